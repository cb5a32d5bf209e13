import { create } from "@bufbuild/protobuf";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import type { WorkflowError } from "#gen/service/v1/workflow_error_pb.js";
import type { WorkflowExecution, WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import { ListWorkflowExecutionOutputsResponse_ActionOutputSchema as ActionOutputSchema } from "#gen/service/v1/workflow_service_pb.js";
import { notFound } from "../../../domain/error.ts";
import { phaseOf, stepsOf } from "../../../domain/workflow/execution/workflow-action.ts";
import { type ActionEnd, endedAction } from "../../../domain/workflow/execution/workflow-action-end.ts";
import {
  begunAction,
  expiredAction,
  mustStop,
  steppedAction,
  warnedAction,
} from "../../../domain/workflow/execution/workflow-action-transitions.ts";
import { begunExecution } from "../../../domain/workflow/execution/workflow-execution.ts";
import type { StepTransition } from "../../../domain/workflow/execution/workflow-step.ts";
import { isFinalAction } from "../../../domain/workflow/execution/workflow-transitions.ts";
import { stopWork } from "../../../store/runner/work.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { removeEarlierLogs } from "../../../store/workflow/step-log.ts";
import {
  type FoundAction,
  findAction,
  setBegunSteps,
  updateAction,
} from "../../../store/workflow/workflow-action.ts";
import { findWholeExecution, updateExecution } from "../../../store/workflow/workflow-execution.ts";
import { findOutputs, setOutputs } from "../../../store/workflow/workflow-output.ts";
import { actionChanged } from "../execution/action-change.ts";
import { advanceExecution } from "../execution/execution-advance.ts";

export type { ActionEnd } from "../../../domain/workflow/execution/workflow-action-end.ts";
export type { StepTransition } from "../../../domain/workflow/execution/workflow-step.ts";

/** An action that a runner takes on, and what the runner needs to know with it. */
export interface BegunAction {
  readonly action: WorkflowExecutionAction;
  readonly execution: WorkflowExecution;
  /** The environment variables that its commands read parameters from. */
  readonly variables: Readonly<Record<string, string>>;
}

/**
 * A runner takes an action on. What it is to do: stepsOf(execution, action),
 * within the time until deadlineOf(action), both of domain/workflow-action.ts.
 *
 * @param start.attempt from 1
 * @throws DomainError NOT_FOUND; PHASE_UNSUITABLE for an action that does not wait
 */
export async function beginAction(
  tx: WriteTransaction,
  scope: Scope,
  actionId: string,
  start: { readonly environmentId: string; readonly attempt: number },
): Promise<BegunAction> {
  const before = await foundAction(tx, scope, actionId);
  const action = begunAction(before, { ...start, now: tx.now });
  await updateAction(tx, scope, before, action);
  await removeEarlierLogs(tx, { actionId: before.id, attempt: start.attempt });
  const { execution, variables } = await executionOf(tx, scope, before);
  const begun = begunExecution(execution);
  if (begun) await updateExecution(tx, scope, execution, begun);
  return { action, execution: begun ?? execution, variables };
}

/**
 * Moves steps as a runner reports it, in their order, and keeps what a report
 * step that is done gave. A repeated report changes nothing.
 *
 * @returns whether the runner is to stop: the action is cancelled, or a step of
 *   it has failed, as a report step does whose outputs are not accepted
 * @throws DomainError NOT_FOUND; VALUE_UNUSABLE for a step that the action has
 *   not; PHASE_UNSUITABLE for a move that a step cannot make
 */
export async function advanceSteps(
  tx: WriteTransaction,
  scope: Scope,
  actionId: string,
  moves: readonly StepTransition[],
): Promise<{ stop: boolean }> {
  const before = await foundAction(tx, scope, actionId);
  if (moves.length === 0 || isFinalAction(phaseOf(before))) return { stop: mustStop(before) };
  const { execution } = await executionOf(tx, scope, before);
  const { action, values, began, ended } = steppedAction(before, stepsOf(execution, before), moves, tx.now);
  if (ended) await changeAction(tx, scope, before, action);
  else if (began) await setBegunSteps(tx, scope, action);
  if (Object.keys(values).length > 0) {
    const known = await findOutputs(tx.db, scope, actionId);
    const merged = { ...known?.values, ...values };
    await setOutputs(tx, scope, actionId, create(ActionOutputSchema, { actionId, values: merged }));
  }
  return { stop: mustStop(action) };
}

/**
 * Ends an action, or an attempt at it, and lets its execution go on. One that
 * has ended already stays as it is.
 *
 * @param warnings what people should know besides, such as the runner's
 * @returns "ended": the holder of its work removes it; "again": the action waits
 *   for its next attempt, for which its work goes back to the queue
 * @throws DomainError PHASE_UNSUITABLE for one that is said to be done while a step of it is not
 */
export async function finishAction(
  tx: WriteTransaction,
  scope: Scope,
  actionId: string,
  end: ActionEnd,
  warnings: readonly WorkflowError[],
): Promise<"ended" | "again"> {
  const before = await findAction(tx.db, scope, actionId);
  // It can have been removed with its workflow after it was cut off.
  if (!before || isFinalAction(phaseOf(before))) return "ended";
  const after = endedAction(before, end, warnings, tx.now);
  await changeAction(tx, scope, before, after);
  if (!isFinalAction(phaseOf(after))) {
    await setOutputs(tx, scope, actionId, undefined);
    return "again";
  }
  await advanceExecution(tx, scope, after.metadata?.workflowExecutionId ?? "");
  return "ended";
}

/** Tells the runner of an action whose longest time is over to stop; the action will have failed. */
export async function expireAction(tx: WriteTransaction, scope: Scope, actionId: string): Promise<void> {
  const before = await foundAction(tx, scope, actionId);
  const after = expiredAction(before);
  if (!after) return;
  await changeAction(tx, scope, before, after);
  await stopWork(tx, scope, WorkKind.ACTION, actionId);
}

/** Adds a warning to an action that has none of this reason, such as why it waits. */
export async function warnAction(
  tx: WriteTransaction,
  scope: Scope,
  actionId: string,
  warning: WorkflowError,
): Promise<void> {
  const before = await foundAction(tx, scope, actionId);
  const after = warnedAction(before, warning);
  if (after) await updateAction(tx, scope, before, after);
}

/** Changes an action whose steps may have ended, and with them what works on them. */
async function changeAction(
  tx: WriteTransaction,
  scope: Scope,
  before: WorkflowExecutionAction,
  after: WorkflowExecutionAction,
): Promise<void> {
  await updateAction(tx, scope, before, after);
  await actionChanged.call(tx, scope, after);
}

async function foundAction(tx: WriteTransaction, scope: Scope, actionId: string): Promise<FoundAction> {
  const action = await findAction(tx.db, scope, actionId);
  if (!action) throw notFound("workflow execution action");
  return action;
}

async function executionOf(tx: WriteTransaction, scope: Scope, { id, metadata }: WorkflowExecutionAction) {
  const stored = await findWholeExecution(tx.db, scope, metadata?.workflowExecutionId ?? "");
  if (!stored) throw new Error(`the action ${id} is of no execution`);
  return stored;
}
