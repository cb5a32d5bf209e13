import { toJson } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type {
  CancelWorkflowExecutionActionRequest,
  CancelWorkflowExecutionRequest,
  WorkflowService as Contract,
  CreateWorkflowRequest,
  DeleteWorkflowRequest,
  GetWorkflowExecutionActionRequest,
  GetWorkflowExecutionRequest,
  GetWorkflowExecutionSummaryRequest,
  GetWorkflowRequest,
  GetWorkflowWebhookSecretRequest,
  ListPullRequestsRequest,
  ListWorkflowExecutionActionsRequest,
  ListWorkflowExecutionOutputsRequest,
  ListWorkflowExecutionsRequest,
  ListWorkflowsRequest,
  ListWorkflowTriggerEventsRequest,
  PreviewWorkflowRequest,
  RedeliverWorkflowTriggerEventRequest,
  RetryFailedActionsRequest,
  RotateWorkflowWebhookSecretRequest,
  StartWorkflowRequest,
  StreamActionLogsRequest,
  UpdateWorkflowRequest,
} from "#gen/service/v1/workflow_service_pb.js";
import { ListWorkflowsRequest_FilterSchema } from "#gen/service/v1/workflow_service_pb.js";
import type { Caller } from "../../domain/identity/caller.ts";
import { fold } from "../../domain/text/fold.ts";
import { requireTimestampInRange, roundedUpMs } from "../../domain/timestamp-range.ts";
import { deletedWorkflow, withWebhookUrl } from "../../domain/workflow/workflow.ts";
import { workflowOrder } from "../../domain/workflow/workflow-order.ts";
import { updateWorkflow } from "../../store/workflow/workflow.ts";
import { countWorkflows, findWorkflowPage, type WorkflowFilter } from "../../store/workflow/workflow-list.ts";
import { countAllWorkflows, countExecutions } from "../../store/workflow/workflow-summary.ts";
import { callerOf, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { listPage } from "../call/page.ts";
import type { StreamDependencies } from "../call/stream-dependencies.ts";
import { streamActionLogs } from "./action/action-logs.ts";
import { cancelExecutionsOfWorkflow } from "./execution/execution-cancel.ts";
import { cancelWorkflowExecution, cancelWorkflowExecutionAction } from "./execution/workflow-cancel.ts";
import {
  getWorkflowExecution,
  getWorkflowExecutionAction,
  listWorkflowExecutionActions,
  listWorkflowExecutionOutputs,
  listWorkflowExecutions,
} from "./execution/workflow-execution-list.ts";
import { previewWorkflow } from "./execution/workflow-preview.ts";
import { retryFailedActions, startWorkflow } from "./execution/workflow-start.ts";
import { getChangeableWorkflow } from "./owned-workflow.ts";
import { listPullRequests } from "./pull-request/pull-request-list.ts";
import { listWorkflowTriggerEvents } from "./trigger/trigger-event-list.ts";
import { redeliverWorkflowTriggerEvent } from "./trigger/trigger-redelivery.ts";
import { getWorkflowWebhookSecret, rotateWorkflowWebhookSecret } from "./webhook-secret.ts";
import { changeWorkflow, createWorkflow, getWorkflow } from "./workflow-write.ts";

/** Serves workflows and their executions. */
export class WorkflowService implements ServiceImpl<typeof Contract> {
  readonly #deps: StreamDependencies;

  constructor(deps: StreamDependencies) {
    this.#deps = deps;
  }

  createWorkflow = (req: CreateWorkflowRequest, ctx: HandlerContext) => createWorkflow(this.#deps, req, ctx);

  getWorkflow = ({ workflowId }: GetWorkflowRequest, ctx: HandlerContext) =>
    getWorkflow(this.#deps, workflowId, ctx);

  updateWorkflow = (req: UpdateWorkflowRequest, ctx: HandlerContext) => changeWorkflow(this.#deps, req, ctx);

  listWorkflows = (req: ListWorkflowsRequest, ctx: HandlerContext) =>
    listWorkflows(this.#deps, callerOf(ctx), req);

  deleteWorkflow = (req: DeleteWorkflowRequest, ctx: HandlerContext) => deleteWorkflow(this.#deps, req, ctx);

  getWorkflowWebhookSecret = ({ workflowId }: GetWorkflowWebhookSecretRequest, ctx: HandlerContext) =>
    getWorkflowWebhookSecret(this.#deps, workflowId, ctx);

  rotateWorkflowWebhookSecret = ({ workflowId }: RotateWorkflowWebhookSecretRequest, ctx: HandlerContext) =>
    rotateWorkflowWebhookSecret(this.#deps, workflowId, ctx);

  getWorkflowExecutionSummary = (req: GetWorkflowExecutionSummaryRequest, ctx: HandlerContext) =>
    getWorkflowExecutionSummary(this.#deps, callerOf(ctx), req);

  startWorkflow = (req: StartWorkflowRequest, ctx: HandlerContext) => startWorkflow(this.#deps, req, ctx);

  previewWorkflow = (req: PreviewWorkflowRequest, ctx: HandlerContext) =>
    previewWorkflow(this.#deps, callerOf(ctx), req);

  retryFailedActions = (req: RetryFailedActionsRequest, ctx: HandlerContext) =>
    retryFailedActions(this.#deps, req, ctx);

  listWorkflowExecutions = (req: ListWorkflowExecutionsRequest, ctx: HandlerContext) =>
    listWorkflowExecutions(this.#deps, callerOf(ctx), req);

  getWorkflowExecution = ({ workflowExecutionId }: GetWorkflowExecutionRequest, ctx: HandlerContext) =>
    getWorkflowExecution(this.#deps, callerOf(ctx), workflowExecutionId);

  cancelWorkflowExecution = (req: CancelWorkflowExecutionRequest, ctx: HandlerContext) =>
    cancelWorkflowExecution(this.#deps, req, ctx);

  listWorkflowExecutionActions = (req: ListWorkflowExecutionActionsRequest, ctx: HandlerContext) =>
    listWorkflowExecutionActions(this.#deps, callerOf(ctx), req);

  getWorkflowExecutionAction = (req: GetWorkflowExecutionActionRequest, ctx: HandlerContext) =>
    getWorkflowExecutionAction(this.#deps, callerOf(ctx), req.workflowExecutionActionId);

  cancelWorkflowExecutionAction = (req: CancelWorkflowExecutionActionRequest, ctx: HandlerContext) =>
    cancelWorkflowExecutionAction(this.#deps, req, ctx);

  streamActionLogs = (req: StreamActionLogsRequest, ctx: HandlerContext) =>
    streamActionLogs(this.#deps, req, ctx);

  listWorkflowExecutionOutputs = (req: ListWorkflowExecutionOutputsRequest, ctx: HandlerContext) =>
    listWorkflowExecutionOutputs(this.#deps, callerOf(ctx), req);

  listPullRequests = (req: ListPullRequestsRequest, ctx: HandlerContext) =>
    listPullRequests(this.#deps, callerOf(ctx), req);

  listWorkflowTriggerEvents = (req: ListWorkflowTriggerEventsRequest, ctx: HandlerContext) =>
    listWorkflowTriggerEvents(this.#deps, callerOf(ctx), req);

  redeliverWorkflowTriggerEvent = (req: RedeliverWorkflowTriggerEventRequest, ctx: HandlerContext) =>
    redeliverWorkflowTriggerEvent(this.#deps, req, ctx);
}

/** Marks a workflow for removal. jobs/workflow-removal.ts removes it once its executions have ended. */
function deleteWorkflow(
  { store }: Pick<ServiceDependencies, "store">,
  { workflowId, force }: DeleteWorkflowRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const before = await getChangeableWorkflow(tx, ctx, caller, workflowId);
    const after = deletedWorkflow(before, tx.now);
    if (after) await updateWorkflow(tx, caller, before, after);
    if (force) await cancelExecutionsOfWorkflow(tx, caller, workflowId);
    return {};
  });
}

/** Returns one page of the caller's workflows, and on the first page their count if requested. */
export async function listWorkflows(deps: ServiceDependencies, caller: Caller, req: ListWorkflowsRequest) {
  requireTimestampInRange("filter.hasFailedExecutionSince", req.filter?.hasFailedExecutionSince);
  const filter = toWorkflowFilter(req);
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

function toWorkflowFilter({ filter }: ListWorkflowsRequest): WorkflowFilter {
  const since = filter?.hasFailedExecutionSince;
  return {
    workflowIds: filter?.workflowIds ?? [],
    search: fold(filter?.search ?? ""),
    creatorIds: filter?.creatorIds ?? [],
    phases: filter?.statusPhases ?? [],
    failedSince: since && roundedUpMs(since),
    disabled: filter?.disabled,
  };
}

/** Returns the numbers of executions that ended in a time range, and of the organization's workflows. */
async function getWorkflowExecutionSummary(
  { store }: Pick<ServiceDependencies, "store">,
  caller: Caller,
  { filter }: GetWorkflowExecutionSummaryRequest,
) {
  const { startTime, endTime } = filter?.dateRange ?? {};
  requireTimestampInRange("filter.dateRange.startTime", startTime);
  requireTimestampInRange("filter.dateRange.endTime", endTime);
  const counts = await countExecutions(store.longReader, caller, {
    from: roundedUpMs(startTime),
    until: roundedUpMs(endTime),
    workflowIds: filter?.workflowIds ?? [],
  });
  return {
    successfulCount: BigInt(counts.successful),
    failedCount: BigInt(counts.failed),
    totalCount: BigInt(counts.total),
    totalWorkflowsInOrganization: BigInt(await countAllWorkflows(store.longReader, caller)),
  };
}
