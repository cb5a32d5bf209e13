import type { GetWorkflowExecutionSummaryRequest } from "#gen/service/v1/workflow_service_pb.js";
import type { Caller } from "../../domain/identity/caller.ts";
import { momentMs, requireTimestampInRange } from "../../domain/timestamp-range.ts";
import { countAllWorkflows, countExecutions } from "../../store/workflow/workflow-summary.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";

/** Counts the executions that finished within a span of time, and the workflows of the organization. */
export async function getWorkflowExecutionSummary(
  { store }: Pick<ServiceDependencies, "store">,
  caller: Caller,
  { filter }: GetWorkflowExecutionSummaryRequest,
) {
  const { startTime, endTime } = filter?.dateRange ?? {};
  requireTimestampInRange("filter.dateRange.startTime", startTime);
  requireTimestampInRange("filter.dateRange.endTime", endTime);
  const counts = await countExecutions(store.reader, caller, {
    from: momentMs(startTime),
    until: momentMs(endTime),
    workflowIds: filter?.workflowIds ?? [],
  });
  return {
    successfulCount: BigInt(counts.successful),
    failedCount: BigInt(counts.failed),
    totalCount: BigInt(counts.total),
    totalWorkflowsInOrganization: BigInt(await countAllWorkflows(store.reader, caller)),
  };
}
