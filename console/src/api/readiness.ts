import { Code, ConnectError } from "@connectrpc/connect";
import { useQuery } from "@tanstack/react-query";

/** A message about a part of the server. */
export interface Note {
  /** The part, such as `disk`. */
  readonly check: string;
  readonly reason: string;
}

/** The response of /readyz, for probes and pages alike. */
interface Readiness {
  readonly status: "ok" | "unavailable";
  /** What prevents the server from working. */
  readonly problems?: readonly Note[];
  /** What does not prevent it from working yet. */
  readonly warnings?: readonly Note[];
}

/** The status of a response that says why the server is not ready. */
const NOT_READY = 503;

/** Reads a probe endpoint. When the server is not ready, the response has the status 503 and says why. */
export async function readProbe<T>(path: string, signal: AbortSignal): Promise<T> {
  const response = await fetch(path, { signal });
  const isJson = response.headers.get("content-type")?.includes("json");
  if (!isJson || !(response.ok || response.status === NOT_READY)) {
    const sentence = `the address ${path} answers ${response.status} and tells no more`;
    throw new ConnectError(sentence, Code.Unknown, response.headers);
  }
  return (await response.json()) as T;
}

/** Polls the server's problems and warnings while the page is visible. */
export function useReadiness(againMs: number) {
  return useQuery({
    queryKey: ["readyz"],
    queryFn: ({ signal }) => readProbe<Readiness>("/readyz", signal),
    refetchInterval: againMs,
  });
}
