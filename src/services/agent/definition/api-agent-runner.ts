import { RunnerKind } from "#gen/service/v1/runner_configuration_pb.js";
import { apiAgentRefused, apiAgentsOff } from "../../../domain/agent/definition/agent-definition.ts";
import type { RegisteredAgent } from "../../../store/agent/agent.ts";
import { hasRunnerForApiAgents } from "../../../store/runner/runner.ts";
import { findStoredRunner } from "../../../store/runner/runner-life.ts";
import type { Reader, Scope } from "../../../store/store.ts";

/**
 * Requires that the requested runner accepts the agent of a new agent execution or, without a requested runner, that
 * some runner does. Every runner accepts the agents that the operator registered.
 *
 * @param runnerId empty for any runner
 * @throws DomainError PHASE_UNSUITABLE
 */
export async function requireRunnerForAgent(
  db: Reader,
  scope: Scope,
  { agent }: RegisteredAgent,
  runnerId: string,
): Promise<void> {
  if (!agent.definition) return;
  if (runnerId === "") return requireRunnerForApiAgents(db, scope);
  const known = await findStoredRunner(db, scope, runnerId);
  // The local configuration represents runners on many machines, each of which reports which agents it accepts.
  if (known?.runner.kind === RunnerKind.LOCAL_CONFIGURATION) return requireRunnerForApiAgents(db, scope);
  if (!known?.runner.status?.apiAgents) throw apiAgentRefused();
}

/** Requires that a runner of the organization accepts agents defined through the API. @throws DomainError PHASE_UNSUITABLE */
export async function requireRunnerForApiAgents(db: Reader, scope: Scope): Promise<void> {
  if (!(await hasRunnerForApiAgents(db, scope))) throw apiAgentsOff();
}
