import { WorkKind } from "#gen/runner/v1/work_pb.js";
import type { WorkflowExecution, WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import { deletedEnvironment } from "../domain/environment.ts";
import { notFound } from "../domain/error.ts";
import { tallyOf } from "../domain/workflow-action.ts";
import { cancelledAction, cutOffAction } from "../domain/workflow-action-moves.ts";
import { cancelledExecution, hasEnded, isCancelled, stoppedExecution } from "../domain/workflow-execution.ts";
import { findEnvironment } from "../store/environment.ts";
import type { Scope, WriteTransaction } from "../store/store.ts";
import { stopWork } from "../store/work.ts";
import { findAction, findActionsOfExecution, updateAction } from "../store/workflow-action.ts";
import {
  findExecution,
  findOpenExecutionIds,
  setExpanded,
  updateExecution,
} from "../store/workflow-execution.ts";
import { stopStepAgents } from "./agent-step-end.ts";
import { changeEnvironment } from "./environment-change.ts";
import { advanceExecution, endExecution } from "./execution-advance.ts";

/**
 * Cancels an execution: actions that wait never start, and runners are told to
 * stop the others. Without such others it is stopped at once. One that has
 * ended, or is being stopped, stays as it is.
 *
 * @throws DomainError NOT_FOUND
 */
export async function cancelExecution(
  tx: WriteTransaction,
  scope: Scope,
  executionId: string,
): Promise<void> {
  const stored = await findExecution(tx.db, scope, executionId);
  if (!stored) throw notFound("workflow execution");
  const { execution } = stored;
  if (hasEnded(execution) || isCancelled(execution)) return;
  let isRunning = false;
  for (const before of await findActionsOfExecution(tx.db, scope, executionId)) {
    const after = cancelledAction(before, tx.newId(), tx.now);
    isRunning ||= tallyOf(after ?? before) === "running";
    if (after) await stopAction(tx, scope, before, after);
  }
  await endOrStop(tx, scope, execution, isRunning);
}

/**
 * Cancels one action; the others of its execution go on. One that has ended, or
 * is being stopped, stays as it is.
 *
 * @throws DomainError NOT_FOUND
 */
export async function cancelAction(tx: WriteTransaction, scope: Scope, actionId: string): Promise<void> {
  const before = await findAction(tx.db, scope, actionId);
  if (!before) throw notFound("workflow execution action");
  const after = cancelledAction(before, tx.newId(), tx.now);
  if (!after) return;
  await stopAction(tx, scope, before, after);
  await advanceExecution(tx, scope, before.metadata?.workflowExecutionId ?? "");
}

/**
 * Stops at once what runs as an executor that was cut off: no runner is waited
 * for. The environments of its actions are removed.
 *
 * @returns how many executions were stopped
 */
export async function cutOffExecutions(
  tx: WriteTransaction,
  scope: Scope,
  executorId: string,
): Promise<number> {
  const ids = await findOpenExecutionIds(tx.db, scope, { executorId });
  for (const id of ids) {
    const stored = await findExecution(tx.db, scope, id);
    if (!stored) continue;
    for (const before of await findActionsOfExecution(tx.db, scope, id)) {
      const after = cutOffAction(before, tx.newId(), tx.now);
      if (!after) continue;
      await stopAction(tx, scope, before, after);
      if (tallyOf(before) === "running") {
        await letEnvironmentGo(tx, scope, before.status?.environmentId ?? "");
      }
    }
    await endOrStop(tx, scope, stored.execution, false);
  }
  return ids.length;
}

async function endOrStop(
  tx: WriteTransaction,
  scope: Scope,
  before: WorkflowExecution,
  isRunning: boolean,
): Promise<void> {
  // What was not made by now never is.
  await setExpanded(tx, before.id);
  const after =
    cancelledExecution(before, { session: tx.newId(), isRunning, now: tx.now }) ??
    stoppedExecution(before, tx.now);
  if (isRunning) await updateExecution(tx, scope, before, after);
  else await endExecution(tx, scope, before, after);
}

async function stopAction(
  tx: WriteTransaction,
  scope: Scope,
  before: WorkflowExecutionAction,
  after: WorkflowExecutionAction,
): Promise<void> {
  await stopWork(tx, WorkKind.ACTION, before.id);
  await updateAction(tx, scope, before, after);
  await stopStepAgents(tx, scope, after);
}

async function letEnvironmentGo(tx: WriteTransaction, scope: Scope, environmentId: string): Promise<void> {
  const environment = await findEnvironment(tx.db, scope, environmentId);
  const deleted = environment && deletedEnvironment(environment);
  if (deleted) await changeEnvironment(tx, scope, environment, deleted);
}
