import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type {
  AgentService as Contract,
  CreateAgentRequest,
  DeleteAgentExecutionRequest,
  DeleteAgentRequest,
  ForkAgentExecutionRequest,
  GetAgentExecutionRequest,
  ListAgentExecutionsRequest,
  ListAgentInputsRequest,
  ListAgentOutputBlocksRequest,
  ListAgentsRequest,
  SendToAgentExecutionRequest,
  StartAgentRequest,
  StopAgentExecutionRequest,
  UpdateAgentRequest,
  WatchAgentExecutionRequest,
} from "#gen/service/v1/agent_service_pb.js";
import { callerOf } from "../call/call.ts";
import type { StreamDependencies } from "../call/stream-dependencies.ts";
import { forkAgentExecution } from "./agent-fork.ts";
import { sendToAgentExecution } from "./agent-input.ts";
import { startAgent } from "./agent-start.ts";
import { deleteAgentExecution, stopAgentExecution } from "./agent-stop.ts";
import { createAgent, deleteAgent, updateAgent } from "./definition/agent-definition.ts";
import {
  getAgentExecution,
  listAgentExecutions,
  listAgentInputs,
  listAgentOutputBlocks,
  listAgents,
} from "./reading/agent-execution-list.ts";
import { watchAgentExecution } from "./reading/agent-watch.ts";

/** Serves agents and agent executions, which accept input while they run. */
export class AgentService implements ServiceImpl<typeof Contract> {
  readonly #deps: StreamDependencies;

  constructor(deps: StreamDependencies) {
    this.#deps = deps;
  }

  startAgent = (req: StartAgentRequest, ctx: HandlerContext) => startAgent(this.#deps, req, ctx);

  forkAgentExecution = (req: ForkAgentExecutionRequest, ctx: HandlerContext) =>
    forkAgentExecution(this.#deps, req, ctx);

  getAgentExecution = ({ agentExecutionId }: GetAgentExecutionRequest, ctx: HandlerContext) =>
    getAgentExecution(this.#deps, callerOf(ctx), agentExecutionId);

  listAgentExecutions = (req: ListAgentExecutionsRequest, ctx: HandlerContext) =>
    listAgentExecutions(this.#deps, callerOf(ctx), req);

  stopAgentExecution = (req: StopAgentExecutionRequest, ctx: HandlerContext) =>
    stopAgentExecution(this.#deps, req, ctx);

  deleteAgentExecution = (req: DeleteAgentExecutionRequest, ctx: HandlerContext) =>
    deleteAgentExecution(this.#deps, req, ctx);

  sendToAgentExecution = (req: SendToAgentExecutionRequest, ctx: HandlerContext) =>
    sendToAgentExecution(this.#deps, req, ctx);

  listAgentInputs = (req: ListAgentInputsRequest, ctx: HandlerContext) =>
    listAgentInputs(this.#deps, callerOf(ctx), req);

  listAgentOutputBlocks = (req: ListAgentOutputBlocksRequest, ctx: HandlerContext) =>
    listAgentOutputBlocks(this.#deps, callerOf(ctx), req);

  watchAgentExecution = (req: WatchAgentExecutionRequest, ctx: HandlerContext) =>
    watchAgentExecution(this.#deps, req, ctx);

  listAgents = (req: ListAgentsRequest, ctx: HandlerContext) => listAgents(this.#deps, callerOf(ctx), req);

  createAgent = (req: CreateAgentRequest, ctx: HandlerContext) => createAgent(this.#deps, req, ctx);

  updateAgent = (req: UpdateAgentRequest, ctx: HandlerContext) => updateAgent(this.#deps, req, ctx);

  deleteAgent = (req: DeleteAgentRequest, ctx: HandlerContext) => deleteAgent(this.#deps, req, ctx);
}
