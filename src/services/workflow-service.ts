import type { HandlerContext } from "@connectrpc/connect";
import type {
  CreateWorkflowRequest,
  GetWorkflowRequest,
  UpdateWorkflowRequest,
} from "#gen/service/v1/workflow_service_pb.js";
import type { ServiceDependencies } from "./dependencies.ts";
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
}
