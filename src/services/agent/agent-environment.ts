import { AgentExecutionFailureReason } from "#gen/service/v1/agent_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import { canRunAgents, unavailableReason } from "../../domain/agent/agent-environment.ts";
import type { AgentFailure } from "../../domain/agent/agent-execution.ts";
import { findOpenAgentExecutionsIn } from "../../store/agent/agent-execution-search.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { queueAgentExecution } from "./agent-execution.ts";
import { findWaitsForEnvironment } from "./agent-wake.ts";
import { haltAgentExecution } from "./halt-agent-execution.ts";

/**
 * Finds the agent executions that a change of an environment affects. Those that wait for it are queued once it is
 * running; all stop when it is no longer available. Agent executions that wait for its new phase are woken.
 *
 * @param after undefined for an environment that was removed
 * @returns the function that applies the change and returns whether an agent execution has changed
 */
export async function findConcernedAgents(
  tx: WriteTransaction,
  scope: Scope,
  before: Environment,
  after: Environment | undefined,
): Promise<() => Promise<boolean>> {
  const message = unavailableReason(before, after);
  const concernsThem = message !== undefined || (after !== undefined && canRunAgents(after));
  const [wake, found] = await Promise.all([
    findWaitsForEnvironment(tx, scope, before, after),
    concernsThem ? findOpenAgentExecutionsIn(tx.db, scope, before.id) : [],
  ]);
  return async () => {
    const areChanged = await wake();
    if (found.length === 0) return areChanged;
    const open = areChanged ? await findOpenAgentExecutionsIn(tx.db, scope, before.id) : found;
    const failure: AgentFailure | undefined =
      message === undefined ? undefined : { reason: AgentExecutionFailureReason.ENVIRONMENT, message };
    for (const stored of open) {
      if (failure) await haltAgentExecution(tx, scope, stored, { failure });
      else if (after) await queueAgentExecution(tx, scope, stored, after);
    }
    return true;
  };
}
