import { useInfiniteQuery } from "@connectrpc/connect-query";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { BY_PAGE, FIRST_PAGE, moreOf } from "../../api/pages.ts";
import { DataTable } from "../../parts/DataTable.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Section } from "../../parts/Page.tsx";

/** The agents that runs may use, and how the operator adds others. */
export function AgentList() {
  const agents = useInfiniteQuery(AgentService.method.listAgents, FIRST_PAGE, BY_PAGE);
  return (
    <>
      <Section title="Agents">
        <Loaded reading={agents}>
          {({ pages }) => {
            const rows = pages.flatMap((page) => page.agents);
            if (rows.length === 0) {
              return (
                <Empty title="No agent is registered yet.">
                  <p>The operator registers one on the server’s machine, with one of the commands below.</p>
                </Empty>
              );
            }
            return (
              <DataTable
                label="Agents"
                rows={rows}
                keyOf={({ id }) => id}
                {...moreOf(agents)}
                columns={[
                  {
                    head: "Name",
                    cell: ({ name, default: isDefault }) => (
                      <>
                        <strong>{name}</strong>
                        {isDefault && <span className="dim"> (default)</span>}
                      </>
                    ),
                  },
                  { head: "Description", cell: ({ description }) => description, isExtra: true },
                  { head: "Of", cell: ({ own }) => (own ? "this organization" : "all organizations") },
                  {
                    head: "Takes model settings",
                    cell: ({ takesSettings }) => (takesSettings ? "yes" : "no"),
                    isExtra: true,
                  },
                ]}
              />
            );
          }}
        </Loaded>
      </Section>
      <Section title="Presets">
        <p className="dim lead">
          An agent is a program on the machines of runners, so that only the operator adds one: on the
          server’s machine, in its folder. The first command lists the programs that are known by a name, with
          what each needs installed and the secret that holds the key of its model; the second registers one
          of them.
        </p>
        <pre className="code">
          npx chartroom agent presets{"\n"}
          npx chartroom agent add Coder --preset NAME
        </pre>
      </Section>
    </>
  );
}
