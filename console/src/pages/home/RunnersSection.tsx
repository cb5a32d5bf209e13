import { useQuery } from "@connectrpc/connect-query";
import { RunnerService } from "#gen/service/v1/runner_service_pb.js";
import { DataTable } from "../../parts/DataTable.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Section } from "../../parts/Page.tsx";
import { State } from "../../parts/State.tsx";
import { Ago } from "../../parts/Time.tsx";
import { runnerState } from "../runners/runner-state.ts";

/** The runners of the organization and their health. */
export function RunnersSection() {
  const runners = useQuery(RunnerService.method.listRunners, { pagination: { pageSize: 100 } });
  return (
    <Section title="Runners" count={runners.data?.runners.length}>
      <Loaded reading={runners}>
        {({ runners }) =>
          runners.length === 0 ? (
            <Empty title="No runner does work yet.">
              <p>
                Runners carry out workflows and agents. Start the server with <code>--local-runner</code> for
                the built-in one.
              </p>
            </Empty>
          ) : (
            <DataTable
              label="Runners"
              rows={runners}
              keyOf={({ runnerId }) => runnerId}
              columns={[
                { head: "Name", cell: ({ name }) => name },
                {
                  head: "State",
                  cell: ({ status }) => {
                    const [tone, word] = runnerState(status?.phase);
                    return <State tone={tone} word={word} />;
                  },
                },
                { head: "Message", cell: ({ status }) => status?.message, isExtra: true },
                { head: "Version", cell: ({ status }) => status?.version, isExtra: true },
                { head: "Last change", cell: ({ status }) => <Ago at={status?.updatedAt} /> },
              ]}
            />
          )
        }
      </Loaded>
    </Section>
  );
}
