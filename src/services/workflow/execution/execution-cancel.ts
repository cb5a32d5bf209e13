import { WorkKind } from "#gen/runner/v1/work_pb.js";
import type { WorkflowExecution, WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import { deletedEnvironment } from "../../../domain/environment/environment.ts";
import { notFound } from "../../../domain/error.ts";
import { countedAs } from "../../../domain/workflow/execution/workflow-action.ts";
import {
  cancelledAction,
  revokedAction,
} from "../../../domain/workflow/execution/workflow-action-transitions.ts";
import {
  cancelledExecution,
  hasEnded,
  isCancelled,
  stoppedExecution,
  stoppingExecution,
} from "../../../domain/workflow/execution/workflow-execution.ts";
import { findEnvironment } from "../../../store/environment/environment.ts";
import { stopWork } from "../../../store/runner/work.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { countQueuedActions, findOpenActions } from "../../../store/workflow/open-actions.ts";
import { insertPendingStop, type StopMode } from "../../../store/workflow/pending-stop.ts";
import { findAction, updateAction } from "../../../store/workflow/workflow-action.ts";
import {
  findExecution,
  findOpenExecutionIds,
  type OpenExecutions,
  setExpanded,
  updateExecution,
} from "../../../store/workflow/workflow-execution.ts";
import { isExhausted, newRowBudget, type RowBudget, spend } from "../../call/row-budget.ts";
import { changeEnvironment } from "../../environment/environment-change.ts";
import { actionChanged } from "./action-change.ts";
import { advanceExecution, endExecution } from "./execution-advance.ts";

/** Rows of a turn's budget that the change of an execution costs, besides its actions. */
const EXECUTION_COST = 2;

/**
 * Cancels an execution: actions that wait never start, and runners are told to
 * stop the others. Without such others it is stopped at once. One that has
 * ended, or is being stopped, stays as it is. Of many actions the first are
 * stopped here, and the rest by jobs/stops.ts.
 *
 * @throws DomainError NOT_FOUND
 */
export async function cancelExecution(tx: WriteTransaction, scope: Scope, id: string): Promise<void> {
  const stored = await findExecution(tx.db, scope, id);
  if (!stored) throw notFound("workflow execution");
  if (hasEnded(stored.execution) || isCancelled(stored.execution)) return;
  if (await stopExecution(tx, scope, id, "cancel", newRowBudget())) return;
  await insertPendingStop(tx, scope, { mode: "cancel", target: "execution", targetId: id });
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

/** Cancels the executions of a workflow that have not ended: the first of them here, the rest by jobs/stops.ts. */
export async function cancelExecutionsOf(
  tx: WriteTransaction,
  scope: Scope,
  workflowId: string,
): Promise<void> {
  if (await stopExecutions(tx, scope, { workflowId }, "cancel", newRowBudget())) return;
  await insertPendingStop(tx, scope, { mode: "cancel", target: "workflow", targetId: workflowId });
}

/**
 * Stops what runs as an executor that was cut off: no runner is waited for. The
 * environments of its actions are removed. Of much that runs the first is
 * stopped here, and the rest by jobs/stops.ts.
 *
 * @returns how many executions there were to stop
 */
export async function revokeExecutions(
  tx: WriteTransaction,
  scope: Scope,
  executorId: string,
): Promise<number> {
  const { length } = await findOpenExecutionIds(tx.db, scope, { executorId });
  if (length > 0 && !(await stopExecutions(tx, scope, { executorId }, "cut_off", newRowBudget()))) {
    await insertPendingStop(tx, scope, { mode: "cut_off", target: "executor", targetId: executorId });
  }
  return length;
}

/**
 * Stops executions that have not ended, oldest first, as far as a turn goes.
 *
 * @param upTo ids after this one are left alone
 * @returns whether nothing is left to do
 */
export async function stopExecutions(
  tx: WriteTransaction,
  scope: Scope,
  which: OpenExecutions,
  mode: StopMode,
  turn: RowBudget,
  upTo?: string,
): Promise<boolean> {
  for (const id of await findOpenExecutionIds(tx.db, scope, which)) {
    if (upTo !== undefined && id > upTo) break;
    if (isExhausted(turn)) return false;
    if (!(await stopExecution(tx, scope, id, mode, turn))) return false;
  }
  return true;
}

/**
 * Stops actions of one execution as far as a turn goes, and the execution with
 * the last of them. After the first turn it gives out no more actions. What is
 * only waited for costs nothing: otherwise turns that begin with it change nothing.
 *
 * @returns whether nothing is left to do but for runners to let go
 */
export async function stopExecution(
  tx: WriteTransaction,
  scope: Scope,
  id: string,
  mode: StopMode,
  turn: RowBudget,
): Promise<boolean> {
  const stored = await findExecution(tx.db, scope, id);
  if (!stored || hasEnded(stored.execution)) return true;
  const { execution } = stored;
  const stoppedAll = await stopActions(tx, scope, id, mode, turn);
  const isRunning = (await countQueuedActions(tx.db, scope, id)) > 0;
  if (stoppedAll && !(isCancelled(execution) && isRunning)) {
    spend(turn, EXECUTION_COST);
    await endOrStop(tx, scope, execution, isRunning);
  } else if (!isCancelled(execution)) {
    spend(turn, EXECUTION_COST);
    await setExpanded(tx, scope, id);
    await updateExecution(tx, scope, execution, stoppingExecution(execution, tx.newId()));
  }
  return stoppedAll;
}

/** @returns whether all that can be stopped now has been */
async function stopActions(
  tx: WriteTransaction,
  scope: Scope,
  executionId: string,
  mode: StopMode,
  turn: RowBudget,
): Promise<boolean> {
  const isCut = mode === "cut_off";
  const stopped = isCut ? revokedAction : cancelledAction;
  for await (const before of findOpenActions(tx.db, scope, executionId)) {
    const after = stopped(before, tx.newId(), tx.now);
    if (!after) continue;
    if (isExhausted(turn)) return false;
    spend(turn, costOf(before));
    await stopAction(tx, scope, before, after);
    if (isCut && countedAs(before) === "running") {
      await releaseEnvironment(tx, scope, before.status?.environmentId ?? "");
    }
  }
  return true;
}

/** An action is written with all of its steps, twice: into its row and into the record. */
function costOf({ status }: WorkflowExecutionAction): number {
  return 1 + Math.floor((status?.stepStatuses.length ?? 0) / 5);
}

async function endOrStop(
  tx: WriteTransaction,
  scope: Scope,
  before: WorkflowExecution,
  isRunning: boolean,
): Promise<void> {
  // What was not made by now never is.
  await setExpanded(tx, scope, before.id);
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
  await stopWork(tx, scope, WorkKind.ACTION, before.id);
  await updateAction(tx, scope, before, after);
  await actionChanged.call(tx, scope, after);
}

async function releaseEnvironment(tx: WriteTransaction, scope: Scope, environmentId: string): Promise<void> {
  const environment = await findEnvironment(tx.db, scope, environmentId);
  const deleted = environment && deletedEnvironment(environment);
  if (deleted) await changeEnvironment(tx, scope, environment, deleted);
}
