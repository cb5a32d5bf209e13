import { toJson } from "@bufbuild/protobuf";
import {
  type ListWorkflowsRequest,
  ListWorkflowsRequest_FilterSchema,
} from "#gen/service/v1/workflow_service_pb.js";
import { fold } from "../../domain/fold.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { pageSize, queryText } from "../../domain/page.ts";
import { momentMs, requireTimestampInRange } from "../../domain/timestamp-range.ts";
import { withWebhookUrl } from "../../domain/workflow/workflow.ts";
import { workflowOrder } from "../../domain/workflow/workflow-order.ts";
import { countWorkflows, findWorkflowPage, type WorkflowFilter } from "../../store/workflow/workflow-list.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { onePage, readerFor, toCount } from "../call/page.ts";

/** One page of the caller's workflows, and on the first page their count when asked. */
export async function listWorkflows(deps: ServiceDependencies, caller: Caller, req: ListWorkflowsRequest) {
  requireTimestampInRange("filter.hasFailedExecutionSince", req.filter?.hasFailedExecutionSince);
  const filter = workflowFilter(req);
  const order = workflowOrder(req.sort);
  const query = queryText(
    "ListWorkflows",
    caller.organizationId,
    req.filter && toJson(ListWorkflowsRequest_FilterSchema, req.filter),
    [order.field, order.direction],
  );
  const after = deps.pageTokens.read(query, req.pagination?.token ?? "");
  const size = pageSize(req.pagination);
  const db = readerFor(deps, caller, filter.search);
  const found = await findWorkflowPage(db, caller, filter, order, after, size + 1);
  const { rows, pagination } = await onePage(deps, query, found, size);
  const count =
    req.count?.include && !after
      ? toCount(await countWorkflows(db, caller, filter, deps.countLimit + 1), deps.countLimit)
      : undefined;
  const workflows = rows.map((workflow) => withWebhookUrl(workflow, deps.baseUrl()));
  return { pagination, workflows, ...(count && { count }) };
}

function workflowFilter({ filter }: ListWorkflowsRequest): WorkflowFilter {
  const since = filter?.hasFailedExecutionSince;
  return {
    workflowIds: filter?.workflowIds ?? [],
    search: fold(filter?.search ?? ""),
    creatorIds: filter?.creatorIds ?? [],
    phases: filter?.statusPhases ?? [],
    failedSince: since && momentMs(since),
    disabled: filter?.disabled,
  };
}
