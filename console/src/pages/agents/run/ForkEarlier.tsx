import { useInfiniteQuery, useMutation } from "@connectrpc/connect-query";
import { Button } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { type AgentOutputBlock, AgentOutputView } from "#gen/service/v1/agent_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { Dialog } from "../../../parts/Dialog.tsx";
import { Empty } from "../../../parts/Page.tsx";
import { Problem } from "../../../parts/Problem.tsx";
import { Ago } from "../../../parts/Time.tsx";
import { turnsOf } from "./turns.ts";

/** Blocks per page (contract). */
const PAGE = 100;

/** Lets a person choose the turn of a conversation after which another run forks. */
export function ForkEarlier({ runId, onClose }: { readonly runId: string; readonly onClose: () => void }) {
  const navigate = useNavigate();
  // Reads every block: folded blocks do not show where a turn ended.
  const blocks = useInfiniteQuery(
    AgentService.method.listAgentOutputBlocks,
    { agentExecutionId: runId, view: AgentOutputView.UNSPECIFIED, pagination: { pageSize: PAGE } },
    {
      pageParamKey: "pagination",
      getNextPageParam: ({ pagination }) =>
        pagination?.nextToken ? { pageSize: PAGE, token: pagination.nextToken } : undefined,
      // Blocks do not change, and each refetch would read all pages again.
      refetchInterval: false,
    },
  );
  const { hasNextPage, isFetchingNextPage, isError, fetchNextPage } = blocks;
  useEffect(() => {
    // Only the person retries a page that could not be read.
    if (hasNextPage && !isFetchingNextPage && !isError) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, isError, fetchNextPage]);
  const fork = useMutation(AgentService.method.forkAgentExecution, {
    onSuccess({ agentExecutionId }) {
      onClose();
      void navigate({ to: "/agents/$runId", params: { runId: agentExecutionId } });
    },
  });
  const turns = turnsOf(blocks.data?.pages.flatMap((page) => page.blocks) ?? []);
  return (
    <Dialog title="Fork from an earlier turn" onClose={onClose}>
      <div className="stack">
        <Problem error={blocks.error} onRetry={() => void fetchNextPage()} />
        <Problem error={fork.error} />
        <p className="dim">
          The new run knows the conversation up to the end of the turn. It sees the environment's files as
          they are now.
        </p>
        {hasNextPage && !isError && (
          <p className="dim" role="status">
            Loading the conversation …
          </p>
        )}
        {blocks.isSuccess && !hasNextPage && turns.length === 0 && (
          <Empty title="There are no earlier turns." />
        )}
        {turns.map(({ sequence, end }, at) => (
          <div key={String(sequence)} className="row">
            <span className="cut">
              Turn {at + 1}: {wordsOf(end)}
            </span>
            <span className="dim small">
              <Ago at={end.at} />
            </span>
            <Button
              size="compact-xs"
              variant="default"
              loading={fork.isPending && fork.variables.sequence === sequence}
              onClick={() => fork.mutate({ agentExecutionId: runId, sequence })}
            >
              Fork after turn {at + 1}
            </Button>
          </div>
        ))}
      </div>
    </Dialog>
  );
}

/** Returns the text that identifies the end of a turn for a person. */
function wordsOf({ block }: AgentOutputBlock): string {
  if (block.case === "text") return block.value.content.slice(0, 120);
  if (block.case === "toolCall") return block.value.title;
  return "…";
}
