import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type {
  AgentWorkService as Contract,
  GetStepAgentRequest,
  ReportAgentRequest,
  ReportAgentsRequest,
  RequestApprovalRequest,
  StartStepAgentRequest,
  StartSubagentRequest,
  StreamInputsRequest,
} from "#gen/runner/v1/agent_work_service_pb.js";
import type { LeaseDependencies } from "../../runner/held-lease.ts";
import { createLeaseStreams } from "../../runner/lease-streams.ts";
import { streamInputs } from "./agent-input-stream.ts";
import { reportAgent, reportAgents } from "./agent-report.ts";
import { requestApproval } from "./approval-request.ts";
import { startStepAgent } from "./step-agent.ts";
import { getStepAgent } from "./step-agent-state.ts";
import { startSubagent } from "./subagent-start.ts";

/** Serves runners that work on leased agent executions. */
export class AgentWorkService implements ServiceImpl<typeof Contract> {
  readonly #deps: LeaseDependencies;

  readonly #streams = createLeaseStreams();

  constructor(deps: LeaseDependencies) {
    this.#deps = deps;
  }

  streamInputs = (req: StreamInputsRequest, ctx: HandlerContext) =>
    streamInputs(this.#deps, this.#streams, req, ctx);

  reportAgent = (req: ReportAgentRequest, ctx: HandlerContext) => reportAgent(this.#deps, req, ctx);

  reportAgents = (req: ReportAgentsRequest, ctx: HandlerContext) => reportAgents(this.#deps, req, ctx);

  startSubagent = (req: StartSubagentRequest, ctx: HandlerContext) => startSubagent(this.#deps, req, ctx);

  requestApproval = (req: RequestApprovalRequest, ctx: HandlerContext) =>
    requestApproval(this.#deps, req, ctx);

  startStepAgent = (req: StartStepAgentRequest, ctx: HandlerContext) => startStepAgent(this.#deps, req, ctx);

  getStepAgent = (req: GetStepAgentRequest, ctx: HandlerContext) => getStepAgent(this.#deps, req, ctx);
}
