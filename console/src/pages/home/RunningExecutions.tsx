import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { DataTable } from "../../parts/DataTable.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Section } from "../../parts/Page.tsx";
import { State, type Tone } from "../../parts/State.tsx";
import { Ago } from "../../parts/Time.tsx";
import { listRunningExecutions, RUNNING_KEY } from "./running-executions.ts";

/** Rows of the list; the page of executions has all. */
const ROWS = 10;

const PHASES: Readonly<Record<string, readonly [Tone, string]>> = {
  PENDING: ["waiting", "Pending"],
  RUNNING: ["running", "Running"],
  STOPPING: ["running", "Stopping"],
};

/** Lists the running executions of workflows. */
export function RunningExecutions() {
  const running = useQuery({
    queryKey: RUNNING_KEY,
    queryFn: ({ signal }) => listRunningExecutions(ROWS, signal),
  });
  return (
    <Section
      title="Running executions"
      more={
        <Link to="/executions" search={{ tab: "going-on" }}>
          All running executions
        </Link>
      }
    >
      <Loaded reading={running} lines={2}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No executions are running.">
              <p>Start a workflow on the Workflows page.</p>
            </Empty>
          ) : (
            <DataTable
              label="Running executions"
              rows={rows}
              keyOf={({ id }) => id}
              columns={[
                {
                  head: "Execution",
                  cell: ({ id: executionId, workflow }) => (
                    <Link className="row-link" to="/executions/$executionId" params={{ executionId }}>
                      {workflow}
                    </Link>
                  ),
                },
                {
                  head: "State",
                  cell: ({ phase }) => {
                    const [tone, word] = PHASES[phase] ?? ["running", "In progress"];
                    return <State tone={tone} word={word} />;
                  },
                },
                {
                  head: "Actions",
                  cell: ({ ended, failed, total }) => (
                    <span className="figures">
                      {failed > 0 && <span className="tone-failed">{failed.toLocaleString()} failed, </span>}
                      {ended.toLocaleString()} of {total.toLocaleString()}
                    </span>
                  ),
                  isNumeric: true,
                },
                {
                  head: "Started",
                  cell: ({ startedAt }) => <Ago at={startedAt && timestampFromDate(startedAt)} />,
                  isExtra: true,
                },
              ]}
            />
          )
        }
      </Loaded>
    </Section>
  );
}
