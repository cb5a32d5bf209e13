import {
  WorkflowExecutionAction_Status_StepStatus_StepPhase as StepPhase,
  type WorkflowExecutionAction,
  type WorkflowStep,
} from "#gen/service/v1/workflow_pb.js";
import { phaseUnsuitable, valueUnusable } from "../error.ts";
import { mustStop } from "../workflow/execution/workflow-action-transitions.ts";

/**
 * Returns the key of the agent execution that carries out a step of an action, in one attempt.
 * @param outputKey of a report step, the key of the output; empty for an agent step
 */
export function stepKey(attempt: number, stepIndex: number, outputKey: string): string {
  return `${attempt}.${stepIndex}.${outputKey}`;
}

/** Returns the index of the step that a key of {@link stepKey} names. */
export function stepIndexOf(key: string): number {
  return Number(key.split(".")[1]);
}

/** Returns whether the step that a key of {@link stepKey} names still needs its agent execution. */
export function isStepRunning(action: WorkflowExecutionAction, key: string): boolean {
  const [attempt, stepIndex] = key.split(".");
  if (mustStop(action) || Number(attempt) !== action.status?.attempt) return false;
  return action.status.stepStatuses[Number(stepIndex)]?.phase === StepPhase.RUNNING;
}

/** Requires that a step runs. @throws DomainError PHASE_UNSUITABLE */
export function requireStepRunning(action: WorkflowExecutionAction, key: string): void {
  if (isStepRunning(action, key)) return;
  const message = "the step is not running: report first that it runs, and start nothing once it must stop";
  throw phaseUnsuitable("step", "", message);
}

/**
 * Returns the prompt for the agent of a step.
 * @param outputKey of a report step, the key of the output that it is for; empty for an agent step
 * @throws DomainError VALUE_UNUSABLE for a step, or an output, that needs no agent
 */
export function promptOfStep(steps: readonly WorkflowStep[], stepIndex: number, outputKey: string): string {
  const step = steps[stepIndex]?.step;
  if (outputKey === "") {
    if (step?.case === "agent") return step.value.prompt;
    throw valueUnusable("stepIndex", `the step ${stepIndex} of the action is no agent step`);
  }
  const outputs = step?.case === "report" ? step.value.outputs : [];
  const extraction = outputs.find(({ key }) => key === outputKey)?.extraction;
  if (extraction?.case === "prompt") return extraction.value;
  const message = `the step ${stepIndex} of the action has no output of that key that a prompt asks for`;
  throw valueUnusable("outputKey", message);
}
