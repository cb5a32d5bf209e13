import { create } from "@bufbuild/protobuf";
import { AgentWorkSchema } from "#gen/runner/v1/work_pb.js";
import { AgentExecutionFailureReason as Reason } from "#gen/service/v1/agent_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import type { AgentFailure } from "../../../domain/agent/agent-execution.ts";
import { traceparentOf } from "../../../domain/trace/trace-context.ts";
import type { RegisteredAgent } from "../../../store/agent/agent.ts";
import type { StoredAgentExecution } from "../../../store/agent/agent-execution.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { presentAgentExecution } from "../reading/agent-reading.ts";

/** The failure of an agent execution whose agent was unregistered before it began. */
export const AGENT_UNREGISTERED: AgentFailure = {
  reason: Reason.SERVICE,
  message: "its agent is no longer registered",
};

/** The failure of an agent execution on a runner whose operator does not allow its agent. */
export const API_AGENT_NOT_ALLOWED: AgentFailure = {
  reason: Reason.SERVICE,
  message:
    "its agent is defined by the API, and the operator of its runner does not allow that: start the runner with --allow-api-agents, or the run on another runner",
};

/** Returns the content of a lease on an agent execution. */
export async function toAgentWork(
  tx: WriteTransaction,
  scope: Scope,
  stored: StoredAgentExecution,
  environment: Environment,
  { agent, command, form, mcpServers }: RegisteredAgent,
) {
  const { id, metadata } = stored.execution;
  return create(AgentWorkSchema, {
    conversationId: metadata?.conversationId || id,
    agentExecution: await presentAgentExecution(tx.db, scope, stored),
    environment,
    ...traceparentOf(metadata?.trace, id),
    command: [...command],
    form,
    variables: agent.definition?.variables ?? {},
    apiDefined: agent.definition !== undefined,
    mcpServers: mcpServers.map((server) => ({ ...server, command: [...server.command] })),
    lastSequence: BigInt(stored.lastSequence),
    ...(stored.progress.fork && { fork: stored.progress.fork }),
  });
}
