import type { HandlerContext } from "@connectrpc/connect";
import type {
  CancelWorkflowExecutionActionRequest,
  CancelWorkflowExecutionRequest,
  CreateWorkflowRequest,
  GetWorkflowExecutionActionRequest,
  GetWorkflowExecutionRequest,
  GetWorkflowRequest,
  ListWorkflowExecutionActionsRequest,
  ListWorkflowExecutionOutputsRequest,
  ListWorkflowExecutionsRequest,
  RetryFailedActionsRequest,
  StartWorkflowRequest,
  UpdateWorkflowRequest,
} from "#gen/service/v1/workflow_service_pb.js";
import { callerOf } from "./call.ts";
import type { ServiceDependencies } from "./dependencies.ts";
import { cancelWorkflowExecution, cancelWorkflowExecutionAction } from "./workflow-cancel.ts";
import {
  answerAction,
  answerActions,
  answerExecution,
  answerExecutions,
  answerOutputs,
} from "./workflow-execution-list.ts";
import { retryFailedActions, startWorkflow } from "./workflow-start.ts";
import { answerWorkflow, changeWorkflow, createWorkflow } from "./workflow-write.ts";

/** Workflows: what runs, when and over which repositories; and their executions. */
export class WorkflowService {
  readonly #deps: ServiceDependencies;

  constructor(deps: ServiceDependencies) {
    this.#deps = deps;
  }

  createWorkflow = (req: CreateWorkflowRequest, ctx: HandlerContext) => createWorkflow(this.#deps, req, ctx);

  getWorkflow = ({ workflowId }: GetWorkflowRequest, ctx: HandlerContext) =>
    answerWorkflow(this.#deps, workflowId, ctx);

  updateWorkflow = (req: UpdateWorkflowRequest, ctx: HandlerContext) => changeWorkflow(this.#deps, req, ctx);

  startWorkflow = (req: StartWorkflowRequest, ctx: HandlerContext) => startWorkflow(this.#deps, req, ctx);

  retryFailedActions = (req: RetryFailedActionsRequest, ctx: HandlerContext) =>
    retryFailedActions(this.#deps, req, ctx);

  listWorkflowExecutions = (req: ListWorkflowExecutionsRequest, ctx: HandlerContext) =>
    answerExecutions(this.#deps, callerOf(ctx), req);

  getWorkflowExecution = ({ workflowExecutionId }: GetWorkflowExecutionRequest, ctx: HandlerContext) =>
    answerExecution(this.#deps, callerOf(ctx), workflowExecutionId);

  cancelWorkflowExecution = (req: CancelWorkflowExecutionRequest, ctx: HandlerContext) =>
    cancelWorkflowExecution(this.#deps, req, ctx);

  listWorkflowExecutionActions = (req: ListWorkflowExecutionActionsRequest, ctx: HandlerContext) =>
    answerActions(this.#deps, callerOf(ctx), req);

  getWorkflowExecutionAction = (req: GetWorkflowExecutionActionRequest, ctx: HandlerContext) =>
    answerAction(this.#deps, callerOf(ctx), req.workflowExecutionActionId);

  cancelWorkflowExecutionAction = (req: CancelWorkflowExecutionActionRequest, ctx: HandlerContext) =>
    cancelWorkflowExecutionAction(this.#deps, req, ctx);

  listWorkflowExecutionOutputs = (req: ListWorkflowExecutionOutputsRequest, ctx: HandlerContext) =>
    answerOutputs(this.#deps, callerOf(ctx), req);
}
