import { WorkKind } from "#gen/runner/v1/work_pb.js";
import type { WorkflowExecution, WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import { notFound } from "../../../domain/error.ts";
import { isAsking } from "../../../domain/workflow/execution/approval-step.ts";
import { countedPhaseOf } from "../../../domain/workflow/execution/workflow-action.ts";
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
import { cancelApprovals } from "../../approval/approval-end.ts";
import { isExhausted, newRowBudget, type RowBudget, rowBudgetOf, spend } from "../../call/row-budget.ts";
import { actionChanged } from "./action-change.ts";
import { advanceExecution, endExecution } from "./execution-advance.ts";
import { requestEnvironmentDeletion } from "./kept-environment.ts";

/** The cost of changing an execution without its actions, in rows of the budget. */
const EXECUTION_COST = 2;

/**
 * Cancels an execution: pending actions never start, and the runners of the others are asked to stop. Without running
 * actions it stops immediately. Nothing changes for an execution that has ended or is being stopped. jobs/stops.ts
 * cancels the actions that exceed the row budget of one transaction.
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
 * Cancels one action; the others of its execution continue. Nothing changes for an action that has ended or is being
 * stopped.
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

/** Cancels the open executions of a workflow. jobs/stops.ts cancels those that exceed the row budget. */
export async function cancelExecutionsOfWorkflow(
  tx: WriteTransaction,
  scope: Scope,
  workflowId: string,
): Promise<void> {
  if (await stopExecutions(tx, scope, { workflowId }, "cancel", rowBudgetOf(tx))) return;
  await insertPendingStop(tx, scope, { mode: "cancel", target: "workflow", targetId: workflowId });
}

/**
 * Stops the open executions of an executor that may no longer act, without waiting for runners, and deletes the
 * environments of their actions. jobs/stops.ts stops those that exceed the row budget.
 *
 * @returns the number of open executions
 */
export async function revokeExecutionsOfExecutor(
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
 * Stops open executions, oldest first, within a row budget.
 *
 * @param maxId executions with a greater id continue
 * @returns true when none remains
 */
export async function stopExecutions(
  tx: WriteTransaction,
  scope: Scope,
  which: OpenExecutions,
  mode: StopMode,
  budget: RowBudget,
  maxId?: string,
): Promise<boolean> {
  for (const id of await findOpenExecutionIds(tx.db, scope, which)) {
    if (maxId !== undefined && id > maxId) break;
    if (isExhausted(budget)) return false;
    if (!(await stopExecution(tx, scope, id, mode, budget))) return false;
  }
  return true;
}

/**
 * Stops actions of one execution within a row budget, and the execution with its last action. From the first call on
 * it queues no more actions. Actions that only wait for their runner to stop cost nothing, so every call makes
 * progress.
 *
 * @returns true when only runners still have to stop
 */
export async function stopExecution(
  tx: WriteTransaction,
  scope: Scope,
  id: string,
  mode: StopMode,
  budget: RowBudget,
): Promise<boolean> {
  const stored = await findExecution(tx.db, scope, id);
  if (!stored || hasEnded(stored.execution)) return true;
  const { execution, expanded } = stored;
  if (!expanded) await cancelApprovals(tx, scope, { workflowExecutionId: id }, "the execution was stopped");
  const stoppedAll = await stopActions(tx, scope, id, mode, budget);
  const isRunning = (await countQueuedActions(tx.db, scope, id)) > 0;
  if (stoppedAll && !(isCancelled(execution) && isRunning)) {
    spend(budget, EXECUTION_COST);
    await endOrStop(tx, scope, execution, isRunning);
  } else if (!isCancelled(execution)) {
    spend(budget, EXECUTION_COST);
    await setExpanded(tx, scope, id);
    await updateExecution(tx, scope, execution, stoppingExecution(execution, tx.newId()));
  }
  return stoppedAll;
}

/** Stops actions within a row budget. @returns true when every action that can be stopped now was stopped */
async function stopActions(
  tx: WriteTransaction,
  scope: Scope,
  executionId: string,
  mode: StopMode,
  budget: RowBudget,
): Promise<boolean> {
  const isRevoked = mode === "cut_off";
  const toStopped = isRevoked ? revokedAction : cancelledAction;
  for await (const before of findOpenActions(tx.db, scope, executionId)) {
    const after = toStopped(before, tx.newId(), tx.now);
    if (!after) continue;
    if (isExhausted(budget)) return false;
    spend(budget, rowCostOf(before));
    await stopAction(tx, scope, before, after);
    if (isRevoked && countedPhaseOf(before) === "running") {
      await requestEnvironmentDeletion(tx, scope, before.status?.environmentId ?? "");
    }
  }
  return true;
}

/** Returns the cost of changing an action. Its row and its record contain all of its steps. */
function rowCostOf({ status }: WorkflowExecutionAction): number {
  return 1 + Math.floor((status?.stepStatuses.length ?? 0) / 5);
}

async function endOrStop(
  tx: WriteTransaction,
  scope: Scope,
  before: WorkflowExecution,
  isRunning: boolean,
): Promise<void> {
  // From now on no more actions are created for it.
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
  if (isAsking(before)) await cancelApprovals(tx, scope, { actionId: before.id }, "the action was stopped");
  // No runner holds a pending action, but one may keep the environment of the steps before an approval.
  if (countedPhaseOf(before) === "pending")
    await requestEnvironmentDeletion(tx, scope, before.status?.environmentId ?? "");
  await updateAction(tx, scope, before, after);
  await actionChanged.call(tx, scope, after);
}
