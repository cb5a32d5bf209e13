import { clone } from "@bufbuild/protobuf";
import { durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { WorkflowError } from "#gen/service/v1/workflow_error_pb.js";
import {
  WorkflowExecutionActionPhase as Phase,
  type WorkflowExecutionAction,
  type WorkflowExecutionAction_Status,
  WorkflowExecutionActionSchema,
  type WorkflowStep,
} from "#gen/service/v1/workflow_pb.js";
import { phaseUnsuitable } from "../../error.ts";
import { phaseOf } from "./workflow-action.ts";
import { addFailures, addWarnings, workflowError } from "./workflow-error.ts";
import {
  advanceStep,
  cancelSteps,
  type OutputValues,
  type StepTransition,
  stepErrors,
} from "./workflow-step.ts";
import { type ActionEvent, isFinalAction, transitionAction } from "./workflow-transitions.ts";

/** The action as a runner takes it on, as of `now` (milliseconds since 1970 UTC). */
export function begunAction(
  present: WorkflowExecutionAction,
  { environmentId, attempt, now }: { environmentId: string; attempt: number; now: number },
): WorkflowExecutionAction {
  return transitionBy(present, "begin", (action, status) => {
    if (action.metadata) action.metadata.startedAt ??= timestampFromMs(now);
    status.environmentId = environmentId;
    status.attempt = attempt;
  });
}

/** An action after its steps moved. */
export interface SteppedAction {
  readonly action: WorkflowExecutionAction;
  /** What the report steps among them gave. */
  readonly values: OutputValues;
  /** Whether a step began, and whether one ended. */
  readonly began: boolean;
  readonly ended: boolean;
}

/**
 * The action after its steps moved as a runner reports it. A step that fails
 * cancels those after it.
 *
 * @param steps those of the action
 * @throws DomainError VALUE_UNUSABLE for a step that the action has not;
 *   PHASE_UNSUITABLE for a move that a step cannot make
 */
export function steppedAction(
  present: WorkflowExecutionAction,
  steps: readonly WorkflowStep[],
  moves: readonly StepTransition[],
  now: number,
): SteppedAction {
  const phase = phaseOf(present);
  if (phase !== Phase.RUNNING && phase !== Phase.STOPPING) {
    const name = Phase[phase] ?? "";
    throw phaseUnsuitable("workflow execution action", name, `the action is ${name}: no runner has it`);
  }
  const action = clone(WorkflowExecutionActionSchema, present);
  const statuses = action.status?.stepStatuses ?? [];
  const values: OutputValues = {};
  let [began, ended] = [false, false];
  for (const move of moves) {
    const before = statuses[move.stepIndex]?.phase;
    Object.assign(values, advanceStep(statuses, steps, move, now));
    if (statuses[move.stepIndex]?.phase === before) continue;
    if (move.state === "running") began = true;
    else ended = true;
    if (stepErrors(statuses).length > 0) cancelSteps(statuses, now);
  }
  return { action, values, began, ended };
}

/** Whether whoever works on an action is to stop. */
export function isToStop(action: WorkflowExecutionAction): boolean {
  const phase = phaseOf(action);
  if (phase === Phase.STOPPING || isFinalAction(phase)) return true;
  return stepErrors(action.status?.stepStatuses ?? []).length > 0;
}

/** The action after it was cancelled: stopping when a runner has it. Undefined when there is nothing to cancel. */
export function cancelledAction(
  present: WorkflowExecutionAction,
  session: string,
  now: number,
): WorkflowExecutionAction | undefined {
  const phase = phaseOf(present);
  if (phase === Phase.STOPPING || isFinalAction(phase)) return undefined;
  if (phase === Phase.PENDING) return revokedAction(present, session, now);
  return transitionBy(present, "cancel", (action) => wantStopped(action, session));
}

/** The action stopped at once, whoever works on it. Undefined when it has ended. */
export function revokedAction(
  present: WorkflowExecutionAction,
  session: string,
  now: number,
): WorkflowExecutionAction | undefined {
  if (isFinalAction(phaseOf(present))) return undefined;
  return transitionBy(present, "stop", (action, status) => {
    wantStopped(action, session);
    endInPlace(action, status, now);
  });
}

/** The action once its longest time is over: it is stopped, and will have failed. Undefined when it is not running. */
export function expiredAction(present: WorkflowExecutionAction): WorkflowExecutionAction | undefined {
  if (phaseOf(present) !== Phase.RUNNING) return undefined;
  return transitionBy(present, "expire", (action, status) => addFailures(status, timeError(action)));
}

/** The action with one more warning; undefined when it has one of that reason. */
export function warnedAction(
  present: WorkflowExecutionAction,
  warning: WorkflowError,
): WorkflowExecutionAction | undefined {
  if (present.status?.warnings.some(({ reason }) => reason === warning.reason)) return undefined;
  const action = clone(WorkflowExecutionActionSchema, present);
  if (action.status) addWarnings(action.status, warning);
  return action;
}

/** The action after a move of the table, changed besides as `change` says. */
export function transitionBy(
  present: WorkflowExecutionAction,
  event: ActionEvent,
  change: (action: WorkflowExecutionAction, status: WorkflowExecutionAction_Status) => void,
): WorkflowExecutionAction {
  const action = clone(WorkflowExecutionActionSchema, present);
  const { status } = action;
  if (!status) throw new Error(`the action ${present.id} has no status`);
  status.phase = transitionAction(status.phase, event);
  change(action, status);
  status.session = action.spec?.session ?? "";
  return action;
}

function wantStopped({ spec }: WorkflowExecutionAction, session: string): void {
  if (!spec || spec.desiredPhase === Phase.STOPPED) return;
  spec.desiredPhase = Phase.STOPPED;
  spec.session = session;
}

/** Ends an action in place: what has not run never will. */
export function endInPlace(
  { metadata }: WorkflowExecutionAction,
  { stepStatuses }: WorkflowExecutionAction_Status,
  now: number,
): void {
  cancelSteps(stepStatuses, now);
  if (metadata) metadata.finishedAt = timestampFromMs(now);
}

/** Why an action fails that is not done in its longest time. */
export function timeError({ spec }: WorkflowExecutionAction): WorkflowError {
  const seconds = spec?.limits?.maxTime ? durationMs(spec.limits.maxTime) / 1000 : 0;
  return workflowError("max_time_exceeded", `the action took longer than ${seconds} s, which is its limit`, {
    max_time_seconds: String(seconds),
  });
}
