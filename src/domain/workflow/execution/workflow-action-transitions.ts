import { durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { WorkflowError } from "#gen/service/v1/workflow_error_pb.js";
import {
  WorkflowExecutionActionPhase as Phase,
  WorkflowExecutionAction_Status_StepStatus_StepPhase as StepPhase,
  type WorkflowExecutionAction,
  type WorkflowExecutionAction_Status,
  type WorkflowStep,
} from "#gen/service/v1/workflow_pb.js";
import { phaseUnsuitable } from "../../error.ts";
import { phaseOf } from "./workflow-action.ts";
import { addFailures, addWarnings, workflowError } from "./workflow-error.ts";
import {
  advanceStep,
  cancelSteps,
  lastMoveOf,
  type OutputValues,
  type StepTransition,
  stepErrors,
  stepStatusesIn,
} from "./workflow-step.ts";
import { type ActionEvent, isFinalAction, transitionAction } from "./workflow-transitions.ts";

/** An attempt at an action, which begins when a runner leases it. */
export interface NewAttempt {
  readonly environmentId: string;
  /** From 1. */
  readonly attempt: number;
  /** Number of the steps of the action. */
  readonly stepCount: number;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
}

/** Returns the action after an attempt at it has begun. */
export function begunAction(
  present: WorkflowExecutionAction,
  { environmentId, attempt, stepCount, now }: NewAttempt,
): WorkflowExecutionAction {
  return transitionedAction(present, "begin", (action, status) => {
    if (status.stepStatuses.length === 0) {
      status.stepStatuses = stepStatusesIn(StepPhase.PENDING, stepCount);
    }
    if (action.metadata) action.metadata.startedAt ??= timestampFromMs(now);
    status.environmentId = environmentId;
    status.attempt = attempt;
  });
}

/** An action after transitions of its steps. */
export interface SteppedAction {
  readonly action: WorkflowExecutionAction;
  /** Values that its report steps produced. */
  readonly values: OutputValues;
  /** True when a step began, and when one ended. */
  readonly began: boolean;
  readonly ended: boolean;
}

/**
 * Returns the action after the transitions of its steps that a runner reports. A failing step
 * cancels those after it.
 * @param steps the action's steps
 * @param now time of transitions that do not say when they happened; later times are reduced to it
 * @throws DomainError VALUE_UNUSABLE for a step that the action does not have; PHASE_UNSUITABLE for
 * a transition that a step cannot make
 */
export function steppedAction(
  present: WorkflowExecutionAction,
  steps: readonly WorkflowStep[],
  transitions: readonly StepTransition[],
  now: number,
): SteppedAction {
  const phase = phaseOf(present);
  if (phase !== Phase.RUNNING && phase !== Phase.STOPPING) {
    const name = Phase[phase] ?? "";
    throw phaseUnsuitable("workflow execution action", name, `the action is ${name}: no runner has it`);
  }
  const action = copyToChange(present);
  const statuses = action.status?.stepStatuses ?? [];
  const values: OutputValues = {};
  let [began, ended] = [false, false];
  for (const transition of transitions) {
    const before = statuses[transition.stepIndex]?.phase;
    // Times never decrease from step to step, whatever the runner reports.
    const at = Math.max(lastMoveOf(statuses), Math.min(now, transition.at ?? now));
    Object.assign(values, advanceStep(statuses, steps, transition, at));
    if (statuses[transition.stepIndex]?.phase === before) continue;
    if (transition.state === "running") began = true;
    else ended = true;
    if (stepErrors(statuses).length > 0) cancelSteps(statuses, at);
  }
  return { action, values, began, ended };
}

/** Returns whether the runner of an action must stop working on it. */
export function mustStop(action: WorkflowExecutionAction): boolean {
  const phase = phaseOf(action);
  if (phase === Phase.STOPPING || isFinalAction(phase)) return true;
  return stepErrors(action.status?.stepStatuses ?? []).length > 0;
}

/**
 * Returns the action after it was cancelled: stopping when a runner has it. Undefined when there is
 * nothing to cancel.
 */
export function cancelledAction(
  present: WorkflowExecutionAction,
  session: string,
  now: number,
): WorkflowExecutionAction | undefined {
  const phase = phaseOf(present);
  if (phase === Phase.STOPPING || isFinalAction(phase)) return undefined;
  if (phase === Phase.PENDING) return revokedAction(present, session, now);
  return transitionedAction(present, "cancel", (action) => requestStop(action, session));
}

/**
 * Returns the action stopped at once, even when a runner works on it. Undefined when it has ended.
 */
export function revokedAction(
  present: WorkflowExecutionAction,
  session: string,
  now: number,
): WorkflowExecutionAction | undefined {
  if (isFinalAction(phaseOf(present))) return undefined;
  return transitionedAction(present, "stop", (action, status) => {
    requestStop(action, session);
    endInPlace(action, status, now);
  });
}

/**
 * Returns the action after its maximum time: it is being stopped, and will have failed. Undefined
 * when it is not running.
 */
export function expiredAction(present: WorkflowExecutionAction): WorkflowExecutionAction | undefined {
  if (phaseOf(present) !== Phase.RUNNING) return undefined;
  return transitionedAction(present, "expire", (action, status) => addFailures(status, timeError(action)));
}

/** Returns the action with a warning, which replaces one with the same reason; undefined when nothing changes. */
export function warnedAction(
  present: WorkflowExecutionAction,
  warning: WorkflowError,
): WorkflowExecutionAction | undefined {
  const earlier = present.status?.warnings.find(({ reason }) => reason === warning.reason);
  if (earlier?.message === warning.message) return undefined;
  const action = copyToChange(present);
  const { status } = action;
  if (status && earlier) {
    status.warnings = status.warnings.map((each) => (each === earlier ? warning : each));
    addWarnings(status);
  } else if (status) addWarnings(status, warning);
  return action;
}

/** Returns the action after a transition of the table, with further changes by `change`. */
export function transitionedAction(
  present: WorkflowExecutionAction,
  event: ActionEvent,
  change: (action: WorkflowExecutionAction, status: WorkflowExecutionAction_Status) => void,
): WorkflowExecutionAction {
  const action = copyToChange(present);
  const { status } = action;
  if (!status) throw new Error(`the action ${present.id} has no status`);
  status.phase = transitionAction(status.phase, event);
  change(action, status);
  status.session = action.spec?.session ?? "";
  return action;
}

/**
 * Returns a copy of an action whose own fields, steps and lists of errors may be changed. It shares the rest, which
 * never changes: a whole copy takes ten times as long.
 */
function copyToChange(present: WorkflowExecutionAction): WorkflowExecutionAction {
  const { metadata, spec, status } = present;
  return {
    ...present,
    ...(metadata && { metadata: { ...metadata } }),
    ...(spec && { spec: { ...spec } }),
    ...(status && {
      status: {
        ...status,
        stepStatuses: status.stepStatuses.map((step) => ({ ...step })),
        failures: [...status.failures],
        warnings: [...status.warnings],
      },
    }),
  };
}

function requestStop({ spec }: WorkflowExecutionAction, session: string): void {
  if (!spec || spec.desiredPhase === Phase.STOPPED) return;
  spec.desiredPhase = Phase.STOPPED;
  spec.session = session;
}

/** Ends an action in place: steps that have not run never will. */
export function endInPlace(
  { metadata }: WorkflowExecutionAction,
  { stepStatuses }: WorkflowExecutionAction_Status,
  now: number,
): void {
  cancelSteps(stepStatuses, now);
  if (metadata) metadata.finishedAt = timestampFromMs(now);
}

/** Returns the failure of an action that was not done in its maximum time. */
export function timeError({ spec }: WorkflowExecutionAction): WorkflowError {
  const seconds = spec?.limits?.maxTime ? durationMs(spec.limits.maxTime) / 1000 : 0;
  return workflowError("max_time_exceeded", `the action took longer than ${seconds} s, which is its limit`, {
    max_time_seconds: String(seconds),
  });
}
