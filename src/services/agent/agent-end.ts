import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import {
  type AgentExecutionEnd,
  type AgentFailure,
  failingAgentExecution,
  hasStopped,
  isWantedStopped,
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
  isMadeForAgent,
  type OpenAgentExecutions,
} from "../../store/agent/agent-execution-search.ts";
import { replaceInterests } from "../../store/agent/agent-interest.ts";
import { findEnvironment, updateEnvironment } from "../../store/environment/environment.ts";
import { stopWork } from "../../store/runner/work.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { removeAgentTokens } from "../identity/environment-token.ts";
import { wakeForEnvironment, wakeForSubagent } from "./agent-wake.ts";

/** How a run is stopped. */
export interface StopReason {
  /** Why it fails; left out for one that was asked to stop. */
  readonly failure?: AgentFailure;
  /** Whether no runner is waited for. */
  readonly atOnce?: boolean;
}

/**
 * Stops a run and its sub-agents. One that a runner holds is told to stop, and
 * has stopped when the runner lets it go. One that has stopped, or was told to,
 * stays as it is.
 */
export async function haltAgentExecution(
  tx: WriteTransaction,
  scope: Scope,
  { execution: before }: StoredAgentExecution,
  { failure, atOnce = false }: StopReason = {},
): Promise<void> {
  if (hasStopped(before) || (isWantedStopped(before) && !atOnce)) return;
  const isHeld = (await stopWork(tx, WorkKind.AGENT, before.id)) === "stopping";
  if (!isHeld || atOnce)
    return endAgentExecution(tx, scope, before.id, { event: "stop", failure }, { atOnce });
  const told = stoppingAgentExecution(before, { session: tx.newId(), now: tx.now }) ?? before;
  await updateAgentExecution(tx, scope, before, failure ? failingAgentExecution(told, failure) : told);
  await stopSubagents(tx, scope, before.id, {});
}

/** Stops the runs that have not stopped, each as {@link haltAgentExecution} does. @returns their ids */
export async function haltAgentExecutions(
  tx: WriteTransaction,
  scope: Scope,
  which: OpenAgentExecutions,
  stop: StopReason,
): Promise<string[]> {
  const ids = await findOpenAgentExecutionIds(tx.db, scope, which);
  // By their ids, since to stop one may stop others of them.
  for (const id of ids) {
    const run = await findAgentExecution(tx.db, scope, id);
    if (run) await haltAgentExecution(tx, scope, run, stop);
  }
  return ids;
}

/**
 * Ends a run, whose work must be out of the queue or about to be: its sub-agents
 * stop, and an environment that was made for a run is stopped with the last run
 * in it.
 */
export async function endAgentExecution(
  tx: WriteTransaction,
  scope: Scope,
  id: string,
  end: Pick<AgentExecutionEnd, "event" | "failure">,
  { atOnce = false }: Pick<StopReason, "atOnce"> = {},
): Promise<void> {
  const stored = await findAgentExecution(tx.db, scope, id);
  if (!stored || hasStopped(stored.execution)) return;
  const { execution: before, environmentId } = stored;
  const after = stoppedAgentExecution(before, { ...end, session: tx.newId(), now: tx.now });
  await updateAgentExecution(tx, scope, before, after);
  await replaceInterests(tx, id, []);
  await removeAgentTokens(tx, scope, environmentId, id);
  await wakeForSubagent(tx, scope, after);
  await stopSubagents(tx, scope, id, { atOnce });
  await releaseEnvironment(tx, scope, environmentId);
}

async function stopSubagents(
  tx: WriteTransaction,
  scope: Scope,
  parentId: string,
  { atOnce = false }: Pick<StopReason, "atOnce">,
): Promise<void> {
  await haltAgentExecutions(tx, scope, { parentId }, { atOnce });
}

async function releaseEnvironment(tx: WriteTransaction, scope: Scope, environmentId: string): Promise<void> {
  if (await hasOpenAgentExecution(tx.db, environmentId)) return;
  if (!(await isMadeForAgent(tx.db, environmentId))) return;
  const before = await findEnvironment(tx.db, scope, environmentId);
  if (before?.spec?.desiredPhase !== EnvironmentPhase.RUNNING) return;
  const after = stoppedEnvironment(before);
  if (!after) return;
  // Nothing works in it any more that would have to follow; others may wait for its phase.
  await updateEnvironment(tx, scope, before, after);
  await wakeForEnvironment(tx, scope, before, after);
}
