import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useInfiniteQuery, useQuery } from "@connectrpc/connect-query";
import { useMemo } from "react";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty } from "../../parts/Page.tsx";
import { ExecutionTable } from "../executions/ExecutionTable.tsx";

const PAGE = 50;

/** Days that the summary covers. */
const DAYS = 30;
const DAY_MS = 86_400_000;

/** Shows the recent results of one workflow, and its executions. */
export function WorkflowExecutions({ workflowId }: { readonly workflowId: string }) {
  const executions = useInfiniteQuery(
    WorkflowService.method.listWorkflowExecutions,
    { filter: { workflowIds: [workflowId] }, pagination: { pageSize: PAGE } },
    {
      pageParamKey: "pagination",
      getNextPageParam: ({ pagination }) =>
        pagination?.nextToken ? { pageSize: PAGE, token: pagination.nextToken } : undefined,
    },
  );
  return (
    <Loaded reading={executions}>
      {({ pages }) => {
        const rows = pages.flatMap(({ workflowExecutions }) => workflowExecutions);
        if (rows.length === 0) {
          return (
            <Empty title="This workflow has no executions yet.">
              <p>Start it above, or wait for a trigger.</p>
            </Empty>
          );
        }
        return (
          <div className="stack">
            <Summary workflowId={workflowId} />
            <ExecutionTable
              label="Executions"
              rows={rows}
              onMore={executions.hasNextPage ? () => void executions.fetchNextPage() : undefined}
              isLoadingMore={executions.isFetchingNextPage}
            />
          </div>
        );
      }}
    </Loaded>
  );
}

function Summary({ workflowId }: { readonly workflowId: string }) {
  const dateRange = useMemo(() => {
    const now = Date.now();
    return {
      startTime: timestampFromDate(new Date(now - DAYS * DAY_MS)),
      // Executions that end while the page is open also count.
      endTime: timestampFromDate(new Date(now + DAY_MS)),
    };
  }, []);
  const { data } = useQuery(WorkflowService.method.getWorkflowExecutionSummary, {
    filter: { dateRange, workflowIds: [workflowId] },
  });
  if (!data) return null;
  const { successfulCount, failedCount, totalCount } = data;
  return (
    <p className="dim figures">
      Ended in the last {DAYS} days: {totalCount.toLocaleString()}, of which{" "}
      {successfulCount.toLocaleString()} succeeded and {failedCount.toLocaleString()} failed.
    </p>
  );
}
