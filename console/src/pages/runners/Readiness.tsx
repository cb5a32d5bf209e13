import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { readProbe, useReadiness } from "../../api/readiness.ts";
import { Loaded } from "../../parts/Loaded.tsx";
import { Section } from "../../parts/Page.tsx";
import { State } from "../../parts/State.tsx";

/** Polling interval in milliseconds. */
const AGAIN_MS = 15_000;

/** Shows whether the server is ready, its problems if not, and its release. */
export function Readiness() {
  const readiness = useReadiness(AGAIN_MS);
  const release = useQuery({
    queryKey: ["version"],
    queryFn: ({ signal }) => readProbe<{ readonly version: string }>("/version", signal),
  });
  return (
    <Section
      title="Server"
      more={
        <Link to="/organization" search={{ tab: "server" }}>
          Server health
        </Link>
      }
    >
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
