import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { TransportProvider } from "@connectrpc/connect-query";
import { createConnectTransport } from "@connectrpc/connect-web";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { signInAgain } from "./session.ts";

/** Notifies the page when the server no longer knows its session. */
const watchSession: Interceptor = (next) => async (req) => {
  try {
    const res = await next(req);
    // A stream's header arrives before the server says whether it knows the session.
    if (!res.stream) signInAgain.set(false);
    return res;
  } catch (error) {
    if (ConnectError.from(error).code === Code.Unauthenticated) signInAgain.set(true);
    throw error;
  }
};

/** Calls the server under the session of the page, in JSON, the format that the server handles fastest. */
export const transport = createConnectTransport({ baseUrl: "/api", interceptors: [watchSession] });

/** Codes for which a retry may succeed. */
const PASSING: ReadonlySet<Code> = new Set([Code.Unavailable, Code.Unknown, Code.DeadlineExceeded]);

/** Caches what the page has read; streams write into it, see stream.ts. */
export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (count, error) => count < 3 && PASSING.has(ConnectError.from(error).code),
      staleTime: 5_000,
      // Events say what has changed; without them, this keeps a page from becoming stale.
      refetchInterval: 60_000,
    },
  },
});

/**
 * Reads everything that the page shows again after a call that changes something. A failure is shown immediately.
 * After a success the call counts as in flight until the page shows the result, so that nobody repeats it in the
 * meantime.
 */
export const rereadAll = {
  onSuccess: () => queries.invalidateQueries(),
  onError: () => void queries.invalidateQueries(),
};

/** Provides the pages with the server and the cache. */
export function ServerProvider({ children }: { readonly children: ReactNode }) {
  return (
    <TransportProvider transport={transport}>
      <QueryClientProvider client={queries}>{children}</QueryClientProvider>
    </TransportProvider>
  );
}
