import { type AgentExecution, AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import type { StartAgentRequest } from "#gen/service/v1/agent_service_pb.js";
import { phaseUnsuitable, valueUnusable } from "../../error.ts";
import { hasStopped, isStopRequested, phaseOfAgentExecution } from "../agent-execution.ts";

/**
 * Requires that another execution may continue the conversation of an execution.
 * @throws DomainError PHASE_UNSUITABLE for one that has not stopped
 */
export function requireContinuable(execution: AgentExecution): void {
  if (hasStopped(execution)) return;
  throw unsuitable(
    execution,
    isStopRequested(execution)
      ? "the agent run is being stopped: resume it once it has stopped"
      : "the agent run has not stopped: send to it, or stop it with StopAgentExecution first",
  );
}

/**
 * Requires that no other execution continues the conversation already, and with it the agent's session.
 * @param continuationId id of the execution that continues it; undefined for none
 * @throws DomainError PHASE_UNSUITABLE
 */
export function requireNotContinued(execution: AgentExecution, continuationId: string | undefined): void {
  if (continuationId === undefined) return;
  throw unsuitable(execution, `the agent run was resumed as ${continuationId}: go on with that one`);
}

/**
 * Requires that an execution does not descend from a step of a workflow.
 * @throws DomainError PHASE_UNSUITABLE
 */
export function requireNotOfStep(execution: AgentExecution, isOfStep: boolean): void {
  if (!isOfStep) return;
  throw unsuitable(
    execution,
    "the agent run belongs to a step of a workflow, which its workflow alone goes on with: start the workflow again",
  );
}

/**
 * Requires that a request leaves out the fields that the execution to continue determines.
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireNoPlacement({
  codeContext,
  runnerId,
  sessionId,
}: Pick<StartAgentRequest, "codeContext" | "runnerId" | "sessionId">): void {
  const given = codeContext ? "codeContext" : runnerId ? "runnerId" : sessionId ? "sessionId" : undefined;
  if (given !== undefined) throw valueUnusable(given, `${given} is that of the run to resume: leave it out`);
}

/**
 * Requires that a request names no agent, or that of the execution to continue.
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireSameAgent({ spec }: AgentExecution, agentId: string): void {
  if (agentId === "" || agentId === spec?.agentId) return;
  throw valueUnusable("agentId", "the run to resume is of another agent: leave agentId out");
}

/** Returns the error for an execution whose environment was removed. */
export function environmentGone() {
  return phaseUnsuitable(
    "environment",
    "DELETED",
    "the environment of the agent run is deleted, and the conversation with it: start another run",
  );
}

/** Returns the error for an execution whose agent is no longer registered. */
export function agentUnregistered() {
  return phaseUnsuitable(
    "agent",
    "UNREGISTERED",
    "the agent of the run is no longer registered: start another run",
  );
}

function unsuitable(execution: AgentExecution, message: string) {
  return phaseUnsuitable("agent execution", Phase[phaseOfAgentExecution(execution)] ?? "", message);
}
