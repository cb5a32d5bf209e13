import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { TransportProvider } from "@connectrpc/connect-query";
import { createConnectTransport } from "@connectrpc/connect-web";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { signInAgain } from "./session.ts";

/** Tells the page when the server no longer knows its session. */
const watchSession: Interceptor = (next) => async (req) => {
  try {
    const res = await next(req);
    // The header of a stream comes before the server says whether it knows the session.
    if (!res.stream) signInAgain.set(false);
    return res;
  } catch (error) {
    if (ConnectError.from(error).code === Code.Unauthenticated) signInAgain.set(true);
    throw error;
  }
};

/** Calls the server under the session of the page, in JSON, which the server answers fastest. */
export const transport = createConnectTransport({ baseUrl: "/api", interceptors: [watchSession] });

/** Codes after which the same call may succeed. */
const PASSING: ReadonlySet<Code> = new Set([Code.Unavailable, Code.Unknown, Code.DeadlineExceeded]);

/** Holds what the page has read; streams write into it, see stream.ts. */
export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (count, error) => count < 3 && PASSING.has(ConnectError.from(error).code),
      staleTime: 5_000,
      // Events tell what has changed; without them this keeps a page from growing old.
      refetchInterval: 60_000,
    },
  },
});

/**
 * What a call that changes something does at its end: all that the page shows is read again. A failure is shown at once.
 * After a success the call counts as under way until the page shows what came of it, so that nobody repeats it meanwhile.
 */
export const rereadAll = {
  onSuccess: () => queries.invalidateQueries(),
  onError: () => void queries.invalidateQueries(),
};

/** Gives the pages the server and what was read of it. */
export function ServerProvider({ children }: { readonly children: ReactNode }) {
  return (
    <TransportProvider transport={transport}>
      <QueryClientProvider client={queries}>{children}</QueryClientProvider>
    </TransportProvider>
  );
}
