import { WorkKind } from "#gen/runner/v1/work_pb.js";
import type { WorkflowExecution } from "#gen/service/v1/workflow_pb.js";
import { newAction } from "../../../domain/workflow/execution/workflow-action.ts";
import { endedAction } from "../../../domain/workflow/execution/workflow-action-end.ts";
import {
  actionCount,
  completedExecution,
  hasEnded,
  isCancelled,
  stoppedExecution,
} from "../../../domain/workflow/execution/workflow-execution.ts";
import { withPlan } from "../../../domain/workflow/execution/workflow-plan.ts";
import { insertWork } from "../../../store/runner/work.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import {
  countQueuedActions,
  findWaitingActions,
  hasReportAction,
} from "../../../store/workflow/open-actions.ts";
import { setLastCompletion } from "../../../store/workflow/workflow.ts";
import { insertActions, markQueued, updateAction } from "../../../store/workflow/workflow-action.ts";
import { findExecution, updateExecution } from "../../../store/workflow/workflow-execution.ts";
import { findPlan } from "../../../store/workflow/workflow-plan.ts";
import { findAccountOfExecutor } from "../../identity/executor.ts";
import { resolveEnvironment } from "../action/action-placement.ts";

/**
 * Lets an execution go on: gives the actions whose turn it is to the queue of
 * work, makes the report action once the others have ended, and ends the
 * execution after the last one. Called after whatever may have made room.
 */
export async function advanceExecution(
  tx: WriteTransaction,
  scope: Scope,
  executionId: string,
): Promise<void> {
  const stored = await findExecution(tx.db, scope, executionId);
  if (!stored?.expanded || hasEnded(stored.execution)) return;
  const { execution } = stored;
  if (isCancelled(execution)) {
    const { runningActionCount, pendingActionCount } = execution.status ?? {};
    // One of many actions is stopped in several transactions.
    if (runningActionCount === 0 && pendingActionCount === 0) {
      await endExecution(tx, scope, execution, stoppedExecution(execution, tx.now));
    }
    return;
  }
  if (await fillQueue(tx, scope, execution)) return;
  if ((await makeReport(tx, scope, execution)) && (await fillQueue(tx, scope, execution))) return;
  await endExecution(tx, scope, execution, completedExecution(execution, [], tx.now));
}

/** Keeps the end of an execution, which is also the newest of its workflow. */
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
 * Gives waiting actions to the queue, as many as may run at the same time. One
 * that nobody could take on fails here, and makes room for the next.
 *
 * @returns whether one of them is in the queue or at a runner
 */
async function fillQueue(tx: WriteTransaction, scope: Scope, execution: WorkflowExecution): Promise<boolean> {
  const maxParallel = execution.spec?.action?.limits?.maxParallel ?? 1;
  let given = await countQueuedActions(tx.db, scope, execution.id);
  while (given < maxParallel) {
    const waiting = await findWaitingActions(tx.db, scope, execution.id, maxParallel - given);
    if (waiting.length === 0) break;
    const executor = execution.metadata?.executor;
    const accountId = executor ? await findAccountOfExecutor(tx, scope, executor) : null;
    for (const action of waiting) {
      const place = await resolveEnvironment(tx, scope, action);
      if ("error" in place) {
        const failed = endedAction(action, { kind: "failed", error: place.error }, [], tx.now);
        await updateAction(tx, scope, action, failed);
        continue;
      }
      await insertWork(tx, scope, {
        kind: WorkKind.ACTION,
        subjectId: action.id,
        groupId: execution.id,
        accountId,
        ...place,
      });
      await markQueued(tx, scope, action.id);
      given += 1;
    }
  }
  return given > 0;
}

/** Makes the report action, once; an execution that had no action has nothing to report on. */
async function makeReport(
  tx: WriteTransaction,
  scope: Scope,
  execution: WorkflowExecution,
): Promise<boolean> {
  if (!execution.spec?.report || (await hasReportAction(tx.db, scope, execution.id))) return false;
  if (actionCount(execution) === 0) return false;
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
