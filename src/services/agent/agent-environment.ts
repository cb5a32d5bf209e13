import { AgentExecutionFailureReason } from "#gen/service/v1/agent_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import { carriesAgents, unavailableReason } from "../../domain/agent/agent-environment.ts";
import type { AgentFailure } from "../../domain/agent/agent-execution.ts";
import { findOpenAgentExecutions } from "../../store/agent/agent-execution-search.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { haltAgentExecution } from "./agent-end.ts";
import { queueAgentExecution } from "./agent-run.ts";
import { wakeForEnvironment } from "./agent-wake.ts";

/**
 * Lets agent runs follow a change of an environment: those that waited for it go
 * to the queue of work once it is up, and all stop when it goes down. Whoever
 * waits for the phase that it reached is woken.
 *
 * @param after undefined for an environment that was removed
 */
export async function syncAgentExecutions(
  tx: WriteTransaction,
  scope: Scope,
  before: Environment,
  after: Environment | undefined,
): Promise<void> {
  await wakeForEnvironment(tx, scope, before, after);
  const message = unavailableReason(before, after);
  if (message === undefined && !(after && carriesAgents(after))) return;
  const failure: AgentFailure | undefined =
    message === undefined ? undefined : { reason: AgentExecutionFailureReason.ENVIRONMENT, message };
  for (const run of await findOpenAgentExecutions(tx.db, scope, { environmentId: before.id })) {
    if (failure) await haltAgentExecution(tx, scope, run, { failure });
    else if (after) await queueAgentExecution(tx, scope, run, after);
  }
}
