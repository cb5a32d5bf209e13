import {
  WorkflowExecutionAction_Status_StepStatus_StepPhase as StepPhase,
  type WorkflowExecutionAction,
} from "#gen/service/v1/workflow_pb.js";
import { isToStop } from "./workflow-action-moves.ts";

/**
 * The key of the run that carries out a step of an action, in one attempt at it.
 *
 * @param outputKey of a report step, the key of the output; empty for an agent step
 */
export function stepKey(attempt: number, stepIndex: number, outputKey: string): string {
  return `${attempt}.${stepIndex}.${outputKey}`;
}

/** Whether the step that a key of {@link stepKey} names still needs its run. */
export function isStepGoingOn(action: WorkflowExecutionAction, key: string): boolean {
  const [attempt, stepIndex] = key.split(".");
  if (isToStop(action) || Number(attempt) !== action.status?.attempt) return false;
  return action.status.stepStatuses[Number(stepIndex)]?.phase === StepPhase.RUNNING;
}
