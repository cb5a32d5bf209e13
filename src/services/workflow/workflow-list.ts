import { toJson } from "@bufbuild/protobuf";
import {
  type ListWorkflowsRequest,
  ListWorkflowsRequest_FilterSchema,
} from "#gen/service/v1/workflow_service_pb.js";
import { fold } from "../../domain/fold.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { momentMs, requireTimestampInRange } from "../../domain/timestamp-range.ts";
import { withWebhookUrl } from "../../domain/workflow/workflow.ts";
import { workflowOrder } from "../../domain/workflow/workflow-order.ts";
import { countWorkflows, findWorkflowPage, type WorkflowFilter } from "../../store/workflow/workflow-list.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { listPage } from "../call/page.ts";

/** One page of the caller's workflows, and on the first page their count when asked. */
export async function listWorkflows(deps: ServiceDependencies, caller: Caller, req: ListWorkflowsRequest) {
  requireTimestampInRange("filter.hasFailedExecutionSince", req.filter?.hasFailedExecutionSince);
  const filter = workflowFilter(req);
  const order = workflowOrder(req.sort);
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListWorkflows",
    parts: [
      req.filter && toJson(ListWorkflowsRequest_FilterSchema, req.filter),
      [order.field, order.direction],
    ],
    pagination: req.pagination,
    search: filter.search,
    find: (db, after, limit) => findWorkflowPage(db, caller, filter, order, after, limit),
    count: req.count?.include ? (db, limit) => countWorkflows(db, caller, filter, limit) : undefined,
  });
  return { ...page, workflows: rows.map((workflow) => withWebhookUrl(workflow, deps.baseUrl())) };
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
