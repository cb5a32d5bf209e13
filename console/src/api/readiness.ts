import { Code, ConnectError } from "@connectrpc/connect";
import { useQuery } from "@tanstack/react-query";

/** A sentence about a part of the server. */
export interface Note {
  /** The part, such as `disk`. */
  readonly check: string;
  readonly reason: string;
}

/** What /readyz answers, to probes as to pages. */
interface Readiness {
  readonly status: "ok" | "unavailable";
  /** What keeps the server from its work. */
  readonly problems?: readonly Note[];
  /** What keeps it from nothing yet. */
  readonly warnings?: readonly Note[];
}

/** The status of an answer that says what keeps the server from being ready. */
const NOT_READY = 503;

/** Reads an address that every probe reads; what it says of a server that is not ready comes with status 503. */
export async function readProbe<T>(path: string, signal: AbortSignal): Promise<T> {
  const response = await fetch(path, { signal });
  const isJson = response.headers.get("content-type")?.includes("json");
  if (!isJson || !(response.ok || response.status === NOT_READY)) {
    const sentence = `the address ${path} answers ${response.status} and tells no more`;
    throw new ConnectError(sentence, Code.Unknown, response.headers);
  }
  return (await response.json()) as T;
}

/** Reads what keeps the server from its work and what it warns of, again and again while the page is visible. */
export function useReadiness(againMs: number) {
  return useQuery({
    queryKey: ["readyz"],
    queryFn: ({ signal }) => readProbe<Readiness>("/readyz", signal),
    refetchInterval: againMs,
  });
}
