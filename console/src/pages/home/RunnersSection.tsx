import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { callJson } from "../../api/json.ts";
import { DataTable } from "../../parts/DataTable.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Section } from "../../parts/Page.tsx";
import { State, type Tone } from "../../parts/State.tsx";
import { Ago } from "../../parts/Time.tsx";

/** The fields of a runner in the contract's JSON. */
export interface Runner {
  readonly runnerId: string;
  readonly name: string;
  readonly kind?: string;
  readonly spec?: { readonly desiredPhase?: string };
  readonly status?: {
    readonly phase?: string;
    readonly message?: string;
    readonly version?: string;
    readonly updatedAt?: string;
  };
}

/** The words and tones of a runner's phases, by their JSON names without `RUNNER_PHASE_`. */
const PHASES: Readonly<Record<string, readonly [Tone, string]>> = {
  CREATED: ["waiting", "Not started yet"],
  INACTIVE: ["failed", "Silent"],
  ACTIVE: ["done", "Active"],
  DELETING: ["stopped", "Being removed"],
  DELETED: ["stopped", "Removed"],
  DEGRADED: ["asks", "Degraded"],
};

/** The kind of the row for members' own machines; nobody has to start that runner. */
const OF_MEMBERS = "RUNNER_KIND_LOCAL_CONFIGURATION";

/** Returns the tone and word for a runner. `Paused` replaces only the states in which it would get work. */
function stateOf({ spec, status }: Runner): readonly [Tone, string] {
  const phase = status?.phase?.replace("RUNNER_PHASE_", "") ?? "";
  const isPaused = spec?.desiredPhase === "RUNNER_PHASE_INACTIVE";
  if (isPaused && (phase === "ACTIVE" || phase === "DEGRADED")) return ["stopped", "Paused"];
  const [tone, word] = PHASES[phase] ?? ["waiting", "Unknown"];
  return [tone, isPaused ? `${word}, paused` : word];
}

/** The query is refetched when an event is about a runner. */
const KEY = ["connect-query", { serviceName: "service.v1.RunnerService", of: "home" }] as const;

async function listRunners(signal: AbortSignal): Promise<readonly Runner[]> {
  const { runners = [] } = await callJson<{ readonly runners?: readonly Runner[] }>(
    "RunnerService/ListRunners",
    signal,
    { pagination: { pageSize: 100 } },
  );
  return runners;
}

interface RunnersSectionProps {
  /** Renders the actions on a runner of the organization. */
  readonly actions?: ((runner: Runner) => ReactNode) | undefined;
}

/** Lists the runners of the organization and their health. */
export function RunnersSection({ actions }: RunnersSectionProps) {
  const runners = useQuery({ queryKey: KEY, queryFn: ({ signal }) => listRunners(signal) });
  return (
    <Section title="Runners" count={runners.data?.length}>
      <Loaded reading={runners}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No runner is connected yet.">
              <p>
                Runners carry out workflows and agents. Start the server with <code>--local-runner</code> for
                the built-in one.
              </p>
            </Empty>
          ) : (
            <DataTable
              label="Runners"
              isStacked={actions !== undefined}
              rows={rows}
              keyOf={({ runnerId }) => runnerId}
              columns={[
                { head: "Name", cell: ({ name }) => name },
                {
                  head: "State",
                  cell: (runner) => {
                    if (runner.kind === OF_MEMBERS)
                      return <span className="dim">on members’ own machines</span>;
                    const [tone, word] = stateOf(runner);
                    return <State tone={tone} word={word} />;
                  },
                },
                { head: "Message", cell: ({ status }) => status?.message, isExtra: true },
                { head: "Version", cell: ({ status }) => status?.version, isExtra: true },
                {
                  head: "Last change",
                  cell: ({ status }) => (
                    <Ago at={status?.updatedAt ? timestampFromDate(new Date(status.updatedAt)) : undefined} />
                  ),
                },
                ...(actions
                  ? [
                      {
                        head: "Action",
                        cell: (runner: Runner) => runner.kind !== OF_MEMBERS && actions(runner),
                      },
                    ]
                  : []),
              ]}
            />
          )
        }
      </Loaded>
    </Section>
  );
}
