import {
  WorkflowExecutionActionPhase as Action,
  WorkflowExecutionPhase as Execution,
  WorkflowExecutionAction_Status_StepStatus_StepPhase as Step,
} from "#gen/service/v1/workflow_pb.js";
import { phaseUnsuitable } from "../../error.ts";

/**
 * One legal transition: from this phase, on this event, to that phase. A transition that is not in
 * a table is rejected.
 */
export type Transition<P extends number, E extends string> = readonly [from: P, event: E, to: P];

export type ExecutionEvent = "begin" | "complete" | "cancel" | "stop";

/**
 * `stop` is the end of a cancellation: at once when no action runs, or when the last one was
 * released.
 */
export const EXECUTION_TRANSITIONS: readonly Transition<Execution, ExecutionEvent>[] = [
  [Execution.PENDING, "begin", Execution.RUNNING],
  [Execution.PENDING, "complete", Execution.COMPLETED],
  [Execution.PENDING, "stop", Execution.STOPPED],
  [Execution.RUNNING, "complete", Execution.COMPLETED],
  [Execution.RUNNING, "cancel", Execution.STOPPING],
  [Execution.RUNNING, "stop", Execution.STOPPED],
  [Execution.STOPPING, "stop", Execution.STOPPED],
];

export type ActionEvent =
  | "begin"
  | "finish"
  | "fail"
  | "lose"
  | "cancel"
  | "expire"
  | "stop"
  | "wait"
  | "pass";

/**
 * `lose` is an attempt that ended with its runner, `expire` the end of the maximum time. Both ends
 * of an action are DONE; one with failures has failed. With `wait` the runner releases it until people
 * have decided; `pass` is its end by the approval of its last step.
 */
export const ACTION_TRANSITIONS: readonly Transition<Action, ActionEvent>[] = [
  [Action.PENDING, "begin", Action.RUNNING],
  [Action.PENDING, "fail", Action.DONE],
  [Action.PENDING, "pass", Action.DONE],
  [Action.PENDING, "stop", Action.STOPPED],
  [Action.RUNNING, "finish", Action.DONE],
  [Action.RUNNING, "fail", Action.DONE],
  [Action.RUNNING, "lose", Action.PENDING],
  [Action.RUNNING, "wait", Action.PENDING],
  [Action.RUNNING, "cancel", Action.STOPPING],
  [Action.RUNNING, "expire", Action.STOPPING],
  [Action.RUNNING, "stop", Action.STOPPED],
  [Action.STOPPING, "finish", Action.DONE],
  [Action.STOPPING, "fail", Action.DONE],
  [Action.STOPPING, "stop", Action.STOPPED],
];

export type StepEvent = "begin" | "finish" | "fail" | "cancel" | "lose";

/**
 * A step whose attempt is lost becomes pending again, even if it was done: the next attempt has another
 * environment.
 */
export const STEP_TRANSITIONS: readonly Transition<Step, StepEvent>[] = [
  [Step.PENDING, "begin", Step.RUNNING],
  [Step.PENDING, "cancel", Step.CANCELLED],
  [Step.RUNNING, "finish", Step.DONE],
  [Step.RUNNING, "fail", Step.FAILED],
  [Step.RUNNING, "cancel", Step.CANCELLED],
  [Step.RUNNING, "lose", Step.PENDING],
  [Step.DONE, "lose", Step.PENDING],
];

/**
 * Returns the phase after an event.
 * @throws DomainError PHASE_UNSUITABLE for a transition that is not in the table
 */
export function transitionExecution(from: Execution, event: ExecutionEvent): Execution {
  const to = target(EXECUTION_TRANSITIONS, from, event);
  if (to !== undefined) return to;
  throw illegal("workflow execution", Execution[from], event);
}

/**
 * Returns the phase after an event.
 * @throws DomainError PHASE_UNSUITABLE for a transition that is not in the table
 */
export function transitionAction(from: Action, event: ActionEvent): Action {
  const to = target(ACTION_TRANSITIONS, from, event);
  if (to !== undefined) return to;
  throw illegal("workflow execution action", Action[from], event);
}

/**
 * Returns the phase after an event.
 * @throws DomainError PHASE_UNSUITABLE for a transition that is not in the table
 */
export function transitionStep(from: Step, event: StepEvent): Step {
  const to = target(STEP_TRANSITIONS, from, event);
  if (to !== undefined) return to;
  throw illegal("step", Step[from], event);
}

/** Returns whether a phase is final: no event leads out of it. */
export function isFinalExecution(phase: Execution): boolean {
  return !EXECUTION_TRANSITIONS.some(([from]) => from === phase);
}

/** Returns whether a phase is final: no event leads out of it. */
export function isFinalAction(phase: Action): boolean {
  return !ACTION_TRANSITIONS.some(([from]) => from === phase);
}

function target<P extends number, E extends string>(
  transitions: readonly Transition<P, E>[],
  phase: P,
  event: E,
): P | undefined {
  return transitions.find(([from, on]) => from === phase && on === event)?.[2];
}

function illegal(resource: string, phase = "UNSPECIFIED", event: string) {
  return phaseUnsuitable(
    resource,
    phase,
    `the event "${event}" is not allowed while the ${resource} is ${phase}`,
  );
}
