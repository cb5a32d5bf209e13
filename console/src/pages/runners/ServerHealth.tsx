import { Code, ConnectError } from "@connectrpc/connect";
import { useQuery } from "@tanstack/react-query";
import { Loaded } from "../../parts/Loaded.tsx";
import { Section } from "../../parts/Page.tsx";
import { State } from "../../parts/State.tsx";

/** What /readyz answers, to probes as to this page. */
interface Readiness {
  readonly status: "ok" | "unavailable";
  readonly problems?: readonly { readonly check: string; readonly reason: string }[];
}

/** The status of an answer that says what keeps the server from being ready. */
const NOT_READY = 503;

/** Milliseconds after which the server is asked again. */
const AGAIN_MS = 15_000;

/** Reads an address that every probe reads; what it says of a server that is not ready comes with status 503. */
async function read<T>(path: string, signal: AbortSignal): Promise<T> {
  const response = await fetch(path, { signal });
  const isJson = response.headers.get("content-type")?.includes("json");
  if (!isJson || !(response.ok || response.status === NOT_READY)) {
    const sentence = `the address ${path} answers ${response.status} and tells no more`;
    throw new ConnectError(sentence, Code.Unknown, response.headers);
  }
  return (await response.json()) as T;
}

/** Whether the server can do its work, or all that keeps it from that, and which release it is. */
export function ServerHealth() {
  const readiness = useQuery({
    queryKey: ["readyz"],
    queryFn: ({ signal }) => read<Readiness>("/readyz", signal),
    refetchInterval: AGAIN_MS,
  });
  const release = useQuery({
    queryKey: ["version"],
    queryFn: ({ signal }) => read<{ readonly version: string }>("/version", signal),
  });
  return (
    <Section title="Server">
      <Loaded reading={readiness}>
        {({ status, problems = [] }) => (
          <>
            <p className="row">
              {status === "ok" ? (
                <State tone="done" word="Ready" />
              ) : (
                <State tone="failed" word="Not ready" />
              )}
              {release.data && <span className="dim">release {release.data.version}</span>}
            </p>
            {problems.length > 0 && (
              <ul>
                {problems.map(({ check, reason }) => (
                  <li key={check}>
                    <code>{check}</code> {reason}
                  </li>
                ))}
              </ul>
            )}
          </>
        )}
      </Loaded>
    </Section>
  );
}
