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
  ListWorkflowExecutionActionsRequest,
  ListWorkflowExecutionOutputsRequest,
  ListWorkflowExecutionsRequest,
  ListWorkflowsRequest,
  ListWorkflowTriggerEventsRequest,
  RedeliverWorkflowTriggerEventRequest,
  RetryFailedActionsRequest,
  RotateWorkflowWebhookSecretRequest,
  StartWorkflowRequest,
  StreamActionLogsRequest,
  UpdateWorkflowRequest,
} from "#gen/service/v1/workflow_service_pb.js";
import { callerOf } from "../call/call.ts";
import type { StreamDependencies } from "../call/stream-dependencies.ts";
import { streamActionLogs } from "./action/action-logs.ts";
import { cancelWorkflowExecution, cancelWorkflowExecutionAction } from "./execution/workflow-cancel.ts";
import {
  getWorkflowExecution,
  getWorkflowExecutionAction,
  listWorkflowExecutionActions,
  listWorkflowExecutionOutputs,
  listWorkflowExecutions,
} from "./execution/workflow-execution-list.ts";
import { retryFailedActions, startWorkflow } from "./execution/workflow-start.ts";
import { listWorkflowTriggerEvents } from "./trigger/trigger-event-list.ts";
import { redeliverTriggerEvent } from "./trigger/trigger-redelivery.ts";
import { deleteWorkflow } from "./workflow-deletion.ts";
import { listWorkflows } from "./workflow-list.ts";
import { getWorkflowWebhookSecret, rotateWebhookSecret } from "./workflow-secret.ts";
import { getWorkflowExecutionSummary } from "./workflow-summary.ts";
import { changeWorkflow, createWorkflow, getWorkflow } from "./workflow-write.ts";

/** Workflows: what runs, when and over which repositories; and their executions. */
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
    rotateWebhookSecret(this.#deps, workflowId, ctx);

  getWorkflowExecutionSummary = (req: GetWorkflowExecutionSummaryRequest, ctx: HandlerContext) =>
    getWorkflowExecutionSummary(this.#deps, callerOf(ctx), req);

  startWorkflow = (req: StartWorkflowRequest, ctx: HandlerContext) => startWorkflow(this.#deps, req, ctx);

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

  listWorkflowTriggerEvents = (req: ListWorkflowTriggerEventsRequest, ctx: HandlerContext) =>
    listWorkflowTriggerEvents(this.#deps, callerOf(ctx), req);

  redeliverWorkflowTriggerEvent = (req: RedeliverWorkflowTriggerEventRequest, ctx: HandlerContext) =>
    redeliverTriggerEvent(this.#deps, req, ctx);
}
