import { useInfiniteQuery, useMutation } from "@connectrpc/connect-query";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { BY_PAGE, FIRST_PAGE, moreOf } from "../../../api/pages.ts";
import { ConfirmButton } from "../../../parts/ConfirmButton.tsx";
import { DataTable } from "../../../parts/DataTable.tsx";
import { DialogButton } from "../../../parts/DialogButton.tsx";
import { Loaded } from "../../../parts/Loaded.tsx";
import { Empty, Section } from "../../../parts/Page.tsx";
import { Problem } from "../../../parts/Problem.tsx";
import type { PartProps } from "../Organization.tsx";
import { AgentForm } from "./AgentForm.tsx";
import { Presets } from "./Presets.tsx";

/** Lists the agents that runs may use: those that administrators define, and how the operator adds others. */
export function AgentList({ isAdministrator }: PartProps) {
  const agents = useInfiniteQuery(AgentService.method.listAgents, FIRST_PAGE, BY_PAGE);
  const reread = () => void agents.refetch();
  const remove = useMutation(AgentService.method.deleteAgent, { onSettled: reread });
  return (
    <>
      <Section
        title="Agents"
        more={
          isAdministrator && (
            <DialogButton label="Define agent">
              {(close) => (
                <AgentForm
                  agent={undefined}
                  onDone={() => {
                    close();
                    reread();
                  }}
                />
              )}
            </DialogButton>
          )
        }
      >
        <Problem error={remove.error} />
        <Loaded reading={agents}>
          {({ pages }) => {
            const rows = pages.flatMap((page) => page.agents);
            if (rows.length === 0) {
              return (
                <Empty title="There are no agents yet.">
                  <p>
                    The operator can register one on the server’s machine with a command below. Administrators
                    can define one here if the operator of a runner allows it.
                  </p>
                </Empty>
              );
            }
            return (
              <DataTable
                label="Agents"
                isStacked
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
                  {
                    head: "Available in",
                    cell: ({ own, definition }) =>
                      definition ? "administrators" : own ? "this organization" : "all organizations",
                  },
                  {
                    head: "Program",
                    cell: ({ definition }) =>
                      definition ? (
                        <code>{[definition.command, ...definition.arguments].join(" ")}</code>
                      ) : (
                        <span className="dim">the operator’s</span>
                      ),
                    isExtra: true,
                  },
                  ...(isAdministrator && rows.some(({ definition }) => definition)
                    ? [
                        {
                          head: "Action",
                          cell: (agent: (typeof rows)[number]) =>
                            agent.definition && (
                              <div className="row">
                                <DialogButton label="Change" isMain={false}>
                                  {(close) => (
                                    <AgentForm
                                      agent={agent}
                                      onDone={() => {
                                        close();
                                        reread();
                                      }}
                                    />
                                  )}
                                </DialogButton>
                                <ConfirmButton
                                  label="Delete"
                                  question={`Deletes ${agent.name}. Runs that have started continue; runs that have not will fail.`}
                                  onConfirm={() => remove.mutate({ agentId: agent.id })}
                                  isBusy={remove.isPending && remove.variables.agentId === agent.id}
                                />
                              </div>
                            ),
                        },
                      ]
                    : []),
                ]}
              />
            );
          }}
        </Loaded>
      </Section>
      <Section title="Adding agents">
        <p className="dim lead">
          An agent is a program on the machines of runners. Administrators can define one above for runners
          that were started with <code>--allow-api-agents</code>. For all runners the operator registers one
          on the server’s machine, in its folder: a program that is known by a name below, or any other with{" "}
          <code>--command</code>.
        </p>
        <pre className="code">npx chartroom agent add Coder --preset NAME</pre>
      </Section>
      <Presets />
    </>
  );
}
