import { create } from "@bufbuild/protobuf";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import type { WorkflowError } from "#gen/service/v1/workflow_error_pb.js";
import type {
  WorkflowExecution,
  WorkflowExecutionAction,
  WorkflowStep,
} from "#gen/service/v1/workflow_pb.js";
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
import { workflowError } from "../../../domain/workflow/execution/workflow-error.ts";
import { begunExecution } from "../../../domain/workflow/execution/workflow-execution.ts";
import { needAgents, type StepTransition } from "../../../domain/workflow/execution/workflow-step.ts";
import { isFinalAction } from "../../../domain/workflow/execution/workflow-transitions.ts";
import { type StoredWork, stopWork } from "../../../store/runner/work.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { removeEarlierLogs } from "../../../store/workflow/step-log.ts";
import {
  type ActionUpdateOptions,
  type FoundAction,
  findAction,
  setBegunSteps,
  updateAction,
} from "../../../store/workflow/workflow-action.ts";
import { findWholeExecution, updateExecution } from "../../../store/workflow/workflow-execution.ts";
import { findOutputs, setOutputs } from "../../../store/workflow/workflow-output.ts";
import type { RunnerWait } from "../../runner/work-handler.ts";
import { actionChanged } from "../execution/action-change.ts";
import { advanceExecution } from "../execution/execution-advance.ts";

export type { ActionEnd } from "../../../domain/workflow/execution/workflow-action-end.ts";
export type { StepTransition } from "../../../domain/workflow/execution/workflow-step.ts";

/** An action with the data that its runner needs. */
export interface ActionOfExecution {
  readonly action: FoundAction;
  /** The execution with its plan. */
  readonly execution: WorkflowExecution;
  /** The environment variables that its commands read parameters from. */
  readonly variables: Readonly<Record<string, string>>;
}

/** Returns an action and its execution; undefined when either was removed. */
export async function findActionOfExecution(
  tx: WriteTransaction,
  scope: Scope,
  actionId: string,
  executionId: string,
): Promise<ActionOfExecution | undefined> {
  const [action, stored] = await Promise.all([
    findAction(tx.db, scope, actionId),
    findWholeExecution(tx.db, scope, executionId),
  ]);
  return action && stored && { action, execution: stored.execution, variables: stored.variables };
}

/**
 * Begins an attempt at an action, which a runner has leased.
 *
 * @param found the action and its execution as found in this transaction
 * @param start.attempt from 1
 * @returns the action and its execution afterwards
 * @throws DomainError PHASE_UNSUITABLE for an action that is not pending
 */
export async function beginAction(
  tx: WriteTransaction,
  scope: Scope,
  { action: before, execution, variables }: ActionOfExecution,
  start: { readonly environmentId: string; readonly attempt: number },
): Promise<ActionOfExecution> {
  const stepCount = stepsOf(execution, before).length;
  const action = begunAction(before, { ...start, stepCount, now: tx.now });
  await updateAction(tx, scope, before, action);
  if (start.attempt > 1) await removeEarlierLogs(tx, { actionId: before.id, attempt: start.attempt });
  const begun = begunExecution(execution);
  if (begun) await updateExecution(tx, scope, execution, begun);
  return { action: Object.assign(action, { id: before.id }), execution: begun ?? execution, variables };
}

/**
 * Applies the step transitions that a runner reports, in order, and stores the outputs of finished report steps. A
 * repeated report changes nothing.
 *
 * @param before the action as found in this transaction, and its steps
 * @returns the action afterwards, and whether the runner must stop: the action is cancelled, or a step has failed,
 * which includes a report step whose outputs are not accepted
 * @throws DomainError VALUE_UNUSABLE for a step that the action does not have; PHASE_UNSUITABLE for an invalid
 * transition
 */
export async function advanceSteps(
  tx: WriteTransaction,
  scope: Scope,
  { before, steps }: { readonly before: FoundAction; readonly steps: readonly WorkflowStep[] },
  transitions: readonly StepTransition[],
  { isChangedNext = false }: ActionUpdateOptions = {},
): Promise<{ readonly action: FoundAction; readonly stop: boolean }> {
  if (transitions.length === 0 || isFinalAction(phaseOf(before))) {
    return { action: before, stop: mustStop(before) };
  }
  const stepped = steppedAction(before, steps, transitions, tx.now);
  const { values, began, ended } = stepped;
  const action = Object.assign(stepped.action, { id: before.id });
  if (ended) await changeAction(tx, scope, before, action, needAgents(steps), { isChangedNext });
  else if (began && !isChangedNext) await setBegunSteps(tx, scope, action);
  if (Object.keys(values).length > 0) {
    const { id: actionId } = before;
    const known = await findOutputs(tx.db, scope, actionId);
    const merged = { ...known?.values, ...values };
    await setOutputs(tx, scope, actionId, create(ActionOutputSchema, { actionId, values: merged }));
  }
  return { action, stop: mustStop(action) };
}

/**
 * Ends an action, or an attempt at it, and advances its execution. Nothing changes for an action that has already
 * ended.
 *
 * @param before the action as found in this transaction; undefined when it was removed
 * @param warnings warnings of the runner, which are added to the action
 * @param mayHaveAgentSteps false if no agent executes a step of it
 * @returns "ended" when the caller must remove the work, "again" when the work must return to the queue for the next
 * attempt
 * @throws DomainError PHASE_UNSUITABLE for an action that is reported done while a step is not
 */
export async function finishAction(
  tx: WriteTransaction,
  scope: Scope,
  before: FoundAction | undefined,
  end: ActionEnd,
  warnings: readonly WorkflowError[],
  mayHaveAgentSteps = true,
): Promise<"ended" | "again"> {
  // It may have been revoked and then removed together with its workflow.
  if (!before || isFinalAction(phaseOf(before))) return "ended";
  const after = endedAction(before, end, warnings, tx.now);
  await changeAction(tx, scope, before, after, mayHaveAgentSteps);
  if (!isFinalAction(phaseOf(after))) {
    await setOutputs(tx, scope, before.id, undefined);
    return "again";
  }
  const executionId = after.metadata?.workflowExecutionId ?? "";
  await advanceExecution(tx, scope, executionId, { hasEndedOne: true });
  return "ended";
}

/** Expires an action that has reached its timeout: it will fail, and its runner is asked to stop. */
export async function expireAction(tx: WriteTransaction, scope: Scope, actionId: string): Promise<void> {
  const before = await getAction(tx, scope, actionId);
  const after = expiredAction(before);
  if (!after) return;
  await changeAction(tx, scope, before, after);
  await stopWork(tx, scope, WorkKind.ACTION, actionId);
}

/** Adds a warning to an action; it replaces one with the same reason. */
export async function warnAction(
  tx: WriteTransaction,
  scope: Scope,
  actionId: string,
  warning: WorkflowError,
): Promise<void> {
  const before = await getAction(tx, scope, actionId);
  const after = warnedAction(before, warning);
  if (after) await updateAction(tx, scope, before, after);
}

/** Adds a warning to an unleased action: it waits for a runner. */
export async function warnOfRunnerWait(
  tx: WriteTransaction,
  scope: Scope,
  work: Pick<StoredWork, "subject_id">,
  { message, policies }: RunnerWait,
): Promise<void> {
  const before = await findAction(tx.db, scope, work.subject_id);
  if (!before || isFinalAction(phaseOf(before))) return;
  const meta = { policies: policies.join(",") };
  await warnAction(tx, scope, before.id, workflowError("waiting_for_runner", message, meta));
}

/**
 * Updates an action, and calls the hook, since a step of it may have ended.
 *
 * @param mayHaveAgentSteps false if no agent executes a step of it
 */
async function changeAction(
  tx: WriteTransaction,
  scope: Scope,
  before: WorkflowExecutionAction,
  after: WorkflowExecutionAction,
  mayHaveAgentSteps = true,
  options?: ActionUpdateOptions,
): Promise<void> {
  await updateAction(tx, scope, before, after, options);
  if (mayHaveAgentSteps) await actionChanged.call(tx, scope, after);
}

async function getAction(tx: WriteTransaction, scope: Scope, actionId: string): Promise<FoundAction> {
  const action = await findAction(tx.db, scope, actionId);
  if (!action) throw notFound("workflow execution action");
  return action;
}
