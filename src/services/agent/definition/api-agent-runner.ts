import { RunnerKind } from "#gen/service/v1/runner_configuration_pb.js";
import { apiAgentRefused, apiAgentsOff } from "../../../domain/agent/definition/agent-definition.ts";
import type { RegisteredAgent } from "../../../store/agent/agent.ts";
import { hasRunnerForApiAgents } from "../../../store/runner/runner.ts";
import { findStoredRunner } from "../../../store/runner/runner-life.ts";
import type { Reader, Scope } from "../../../store/store.ts";

/**
 * Requires that the runner of a new agent execution takes its agent; for one that any runner may take, that some runner
 * does. Every runner takes the agents that the operator registered.
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
  // The local configuration represents runners of many machines, each of which says for itself what it takes.
  if (known?.runner.kind === RunnerKind.LOCAL_CONFIGURATION) return requireRunnerForApiAgents(db, scope);
  if (!known?.runner.status?.apiAgents) throw apiAgentRefused();
}

/** Requires that a runner of the organization takes agents that are defined by the API. @throws DomainError PHASE_UNSUITABLE */
export async function requireRunnerForApiAgents(db: Reader, scope: Scope): Promise<void> {
  if (!(await hasRunnerForApiAgents(db, scope))) throw apiAgentsOff();
}
