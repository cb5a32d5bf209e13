import { WorkKind } from "#gen/runner/v1/work_pb.js";
import type { WorkflowExecution, WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import { newAction } from "../../../domain/workflow/execution/workflow-action.ts";
import { endedAction } from "../../../domain/workflow/execution/workflow-action-end.ts";
import {
  completedExecution,
  hasEnded,
  isCancelled,
  isStoppedByActions,
  stoppedExecution,
  totalActionCount,
} from "../../../domain/workflow/execution/workflow-execution.ts";
import { withPlan } from "../../../domain/workflow/execution/workflow-plan.ts";
import { insertWorks, type NewWork } from "../../../store/runner/work.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import {
  type ExecutionQueue,
  findExecutionQueue,
  findWaitingActions,
  hasReportAction,
} from "../../../store/workflow/open-actions.ts";
import { setLastCompletion } from "../../../store/workflow/workflow.ts";
import { insertActions, markQueued, updateAction } from "../../../store/workflow/workflow-action.ts";
import { findExecution, updateExecution } from "../../../store/workflow/workflow-execution.ts";
import { findPlan } from "../../../store/workflow/workflow-plan.ts";
import { resolveActionPlacement } from "../action/action-placement.ts";
import { enterNextStep } from "./approval-entry.ts";

/**
 * Advances an execution: queues the work of its next actions, inserts the report action once the others have ended,
 * and ends the execution after the last one. It must be called after every change that may allow another action to
 * run.
 *
 * @param options.hasEndedOne true after the end of one action, which usually allows exactly one other to begin
 */
export async function advanceExecution(
  tx: WriteTransaction,
  scope: Scope,
  executionId: string,
  { hasEndedOne = false }: { readonly hasEndedOne?: boolean } = {},
): Promise<void> {
  const [stored, queue, next] = await Promise.all([
    findExecution(tx.db, scope, executionId),
    findExecutionQueue(tx.db, scope, executionId),
    hasEndedOne ? findWaitingActions(tx.db, scope, executionId, 1) : undefined,
  ]);
  if (!stored?.expanded || hasEnded(stored.execution)) return;
  const { execution } = stored;
  if (isCancelled(execution)) {
    const { runningActionCount, pendingActionCount } = execution.status ?? {};
    // An execution with many actions is stopped in several transactions.
    if (runningActionCount === 0 && pendingActionCount === 0) {
      await endExecution(tx, scope, execution, stoppedExecution(execution, tx.now));
    }
    return;
  }
  if (isStoppedByActions(execution)) {
    return endExecution(tx, scope, execution, stoppedExecution(execution, tx.now));
  }
  if (await queueActions(tx, scope, execution, queue, next)) return;
  if ((await insertReportAction(tx, scope, execution)) && (await queueActions(tx, scope, execution, queue))) {
    return;
  }
  await endExecution(tx, scope, execution, completedExecution(execution, [], tx.now));
}

/** Stores an execution that has ended, and the time as the last completion of its workflow. */
export async function endExecution(
  tx: WriteTransaction,
  scope: Scope,
  before: WorkflowExecution,
  after: WorkflowExecution,
): Promise<void> {
  await updateExecution(tx, scope, before, after);
  await setLastCompletion(tx, scope, after.metadata?.workflowId ?? "", tx.now);
}

/**
 * Queues the work of pending actions, up to the maximum that may run in parallel. An action whose first step is an
 * approval asks people, and also counts. An action without a possible placement fails.
 *
 * @param queue as found in this transaction, since when no work of it was queued
 * @param first the next action, if it was read already
 * @returns true when an action is queued or leased
 */
async function queueActions(
  tx: WriteTransaction,
  scope: Scope,
  execution: WorkflowExecution,
  { accountId, ...before }: ExecutionQueue,
  first?: readonly WorkflowExecutionAction[],
): Promise<boolean> {
  const maxParallel = execution.spec?.action?.limits?.maxParallel ?? 1;
  let { queued, lastTurn } = before;
  let known = first;
  while (queued < maxParallel) {
    const free = maxParallel - queued;
    const isEnough = known && (free === 1 || known.length === 0);
    const waiting: readonly WorkflowExecutionAction[] =
      known && isEnough ? known : await findWaitingActions(tx.db, scope, execution.id, free);
    known = undefined;
    if (waiting.length === 0) break;
    const whole = withPlan(execution, await findPlan(tx.db, scope, execution.id));
    // Ids of the actions that are queued or wait for people.
    const given: string[] = [];
    const works: NewWork[] = [];
    for (const action of waiting) {
      if ((await enterNextStep(tx, scope, whole, action)).kind === "waiting") {
        given.push(action.id);
        continue;
      }
      const placement = await resolveActionPlacement(tx, scope, action);
      if ("error" in placement) {
        const failed = endedAction(action, { kind: "failed", error: placement.error }, [], tx.now);
        await updateAction(tx, scope, action, failed);
        continue;
      }
      const work = { kind: WorkKind.ACTION, subjectId: action.id, groupId: execution.id, accountId };
      works.push({ ...work, ...placement });
      given.push(action.id);
    }
    await insertWorks(tx, scope, works, lastTurn);
    lastTurn += works.length;
    await markQueued(tx, scope, given);
    queued += given.length;
  }
  return queued > 0;
}

/** Inserts the report action, once. An execution without actions gets none. @returns true when it was inserted */
async function insertReportAction(
  tx: WriteTransaction,
  scope: Scope,
  execution: WorkflowExecution,
): Promise<boolean> {
  if (!execution.spec?.report || (await hasReportAction(tx.db, scope, execution.id))) return false;
  if (totalActionCount(execution) === 0) return false;
  const whole = withPlan(execution, await findPlan(tx.db, scope, execution.id));
  const report = newAction(whole, {
    id: tx.newId(),
    session: tx.newId(),
    name: "report",
    context: undefined,
    report: true,
  });
  await insertActions(tx, scope, execution.id, [report]);
  return true;
}
