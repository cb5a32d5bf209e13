import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import {
  type AgentExecutionEnd,
  type AgentFailure,
  failingAgentExecution,
  hasStopped,
  isStopRequested,
  stoppedAgentExecution,
  stoppingAgentExecution,
} from "../../domain/agent/agent-execution.ts";
import { stoppedEnvironment } from "../../domain/environment/environment.ts";
import {
  findAgentExecution,
  type StoredAgentExecution,
  updateAgentExecution,
} from "../../store/agent/agent-execution.ts";
import {
  findOpenAgentExecutionIds,
  hasOpenAgentExecution,
  isCreatedForAgent,
  type OpenAgentExecutions,
} from "../../store/agent/agent-execution-search.ts";
import { replaceInterests } from "../../store/agent/agent-interest.ts";
import { findEnvironment, updateEnvironment } from "../../store/environment/environment.ts";
import { stopWork } from "../../store/runner/work.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { cancelApprovals } from "../approval/approval-end.ts";
import { removeAgentTokens } from "../identity/environment-token.ts";
import { forgetTurns } from "./agent-lost-turn.ts";
import { findWaitsForEnvironment, wakeForSubagent } from "./agent-wake.ts";

/** The options of a stop. */
export interface StopOptions {
  /** Failure of the agent execution; absent for a stop on request. */
  readonly failure?: AgentFailure;
  /** True to stop without waiting for the runner. Default false. */
  readonly immediate?: boolean;
}

/**
 * Stops an agent execution and its sub-agents. A leased one is marked to stop and stops when its runner ends the
 * lease. Nothing changes for one that has stopped or is already marked.
 */
export async function haltAgentExecution(
  tx: WriteTransaction,
  scope: Scope,
  { execution: before }: StoredAgentExecution,
  { failure, immediate = false }: StopOptions = {},
): Promise<void> {
  if (hasStopped(before) || (isStopRequested(before) && !immediate)) return;
  const isLeased = (await stopWork(tx, scope, WorkKind.AGENT, before.id)) === "stopping";
  if (!isLeased || immediate)
    return endAgentExecution(tx, scope, before.id, { event: "stop", failure }, { immediate: immediate });
  const stopping = stoppingAgentExecution(before, { session: tx.newId(), now: tx.now }) ?? before;
  await updateAgentExecution(
    tx,
    scope,
    before,
    failure ? failingAgentExecution(stopping, failure) : stopping,
  );
  await cancelApprovals(tx, scope, { agentExecutionId: before.id }, "the agent run is stopped");
  await stopSubagents(tx, scope, before.id, {});
}

/**
 * Stops all running agent executions that match a filter, as {@link haltAgentExecution} does.
 *
 * @returns their ids
 */
export async function haltAgentExecutions(
  tx: WriteTransaction,
  scope: Scope,
  filter: OpenAgentExecutions,
  stop: StopOptions,
): Promise<string[]> {
  const ids = await findOpenAgentExecutionIds(tx.db, scope, filter);
  // Read again by id, since stopping one may stop others.
  for (const id of ids) {
    const stored = await findAgentExecution(tx.db, scope, id);
    if (stored) await haltAgentExecution(tx, scope, stored, stop);
  }
  return ids;
}

/**
 * Ends an agent execution. Its work must have been removed from the queue, or be removed in the same transaction. Its
 * sub-agents stop. An environment that was created for an agent execution stops with the last one in it.
 */
export async function endAgentExecution(
  tx: WriteTransaction,
  scope: Scope,
  id: string,
  end: Pick<AgentExecutionEnd, "event" | "failure">,
  { immediate = false }: Pick<StopOptions, "immediate"> = {},
): Promise<void> {
  const stored = await findAgentExecution(tx.db, scope, id);
  if (!stored || hasStopped(stored.execution)) return;
  const { execution: before, environmentId } = stored;
  const stopped = stoppedAgentExecution(before, { ...end, session: tx.newId(), now: tx.now });
  const after = await updateAgentExecution(tx, scope, before, stopped);
  await replaceInterests(tx, before.id, []);
  await forgetTurns(tx, stored);
  await cancelApprovals(tx, scope, { agentExecutionId: before.id }, "the agent run has ended");
  await removeAgentTokens(tx, scope, environmentId, id);
  await wakeForSubagent(tx, scope, after);
  await stopSubagents(tx, scope, id, { immediate: immediate });
  await releaseEnvironment(tx, scope, environmentId);
}

async function stopSubagents(
  tx: WriteTransaction,
  scope: Scope,
  parentId: string,
  { immediate = false }: Pick<StopOptions, "immediate">,
): Promise<void> {
  await haltAgentExecutions(tx, scope, { parentId }, { immediate: immediate });
}

async function releaseEnvironment(tx: WriteTransaction, scope: Scope, environmentId: string): Promise<void> {
  if (await hasOpenAgentExecution(tx.db, scope, environmentId)) return;
  if (!(await isCreatedForAgent(tx.db, scope, environmentId))) return;
  const before = await findEnvironment(tx.db, scope, environmentId);
  if (before?.spec?.desiredPhase !== EnvironmentPhase.RUNNING) return;
  const after = stoppedEnvironment(before);
  if (!after) return;
  // No agent execution in it remains to be stopped; others may wait for its phase.
  await updateEnvironment(tx, scope, before, after);
  const wake = await findWaitsForEnvironment(tx, scope, before, after);
  await wake();
}
