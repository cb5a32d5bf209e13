import { useInfiniteQuery } from "@connectrpc/connect-query";
import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useSearch } from "@tanstack/react-router";
import { AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { Dialog } from "../../parts/Dialog.tsx";
import { Icon } from "../../parts/Icon.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Page, TabLinks } from "../../parts/Page.tsx";
import { RunTable } from "./RunTable.tsx";
import { GOING_ON } from "./run-state.ts";
import { StartRun } from "./StartRun.tsx";

const PAGE = 50;

const TABS = {
  "going-on": ["Active", GOING_ON, "No run is active."],
  waiting: ["Waiting for input", [Phase.WAITING_FOR_INPUT], "No run is waiting for input."],
  ended: ["Ended", [Phase.STOPPED], "No run has ended."],
} as const;

/** Lists the agent runs that the person may read, and starts new ones. */
export function Agents() {
  const { tab = "going-on" } = useSearch({ from: "/agents" });
  const [isOpen, dialog] = useDisclosure();
  const [, phases, whenEmpty] = TABS[tab as keyof typeof TABS] ?? TABS["going-on"];
  const runs = useInfiniteQuery(
    AgentService.method.listAgentExecutions,
    { pagination: { pageSize: PAGE }, filter: { statusPhases: [...phases] } },
    {
      pageParamKey: "pagination",
      getNextPageParam: ({ pagination }) =>
        pagination?.nextToken ? { pageSize: PAGE, token: pagination.nextToken } : undefined,
    },
  );
  return (
    <Page
      title="Agents"
      actions={
        <Button size="xs" leftSection={<Icon name="plus" size={14} />} onClick={dialog.open}>
          Start agent
        </Button>
      }
    >
      <TabLinks current={tab} tabs={Object.entries(TABS).map(([value, [label]]) => [value, label])} />
      <Loaded reading={runs}>
        {({ pages }) => {
          const rows = pages.flatMap(({ agentExecutions }) => agentExecutions);
          if (rows.length === 0) {
            return (
              <Empty title={whenEmpty}>
                <p>
                  An agent works on a project or a repository, and you can talk to it while it works. Start
                  one above.
                </p>
              </Empty>
            );
          }
          return (
            <RunTable
              label="Agent runs"
              rows={rows}
              onMore={runs.hasNextPage ? () => void runs.fetchNextPage() : undefined}
              isLoadingMore={runs.isFetchingNextPage}
            />
          );
        }}
      </Loaded>
      {isOpen && (
        <Dialog title="Start agent" onClose={dialog.close}>
          <StartRun />
        </Dialog>
      )}
    </Page>
  );
}
