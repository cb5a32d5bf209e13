import {
  WorkflowExecutionActionPhase as Phase,
  WorkflowExecutionAction_Status_StepStatus_StepPhase as StepPhase,
  type WorkflowExecutionAction,
  type WorkflowStep,
} from "#gen/service/v1/workflow_pb.js";
import type { Tone } from "../../parts/State.tsx";

/** Returns the tone and word for the state of an action. */
export function actionState({ status }: WorkflowExecutionAction): readonly [Tone, string] {
  switch (status?.phase) {
    case Phase.RUNNING:
      return ["running", "Running"];
    case Phase.STOPPING:
      return ["running", "Stopping"];
    case Phase.STOPPED:
      return ["stopped", "Stopped"];
    case Phase.DONE:
      return status.failures.length > 0 ? ["failed", "Failed"] : ["done", "Done"];
    default:
      return asksForApproval(status) ? ["asks", "Waiting for approval"] : ["waiting", "Pending"];
  }
}

const asksForApproval = (status: WorkflowExecutionAction["status"]): boolean =>
  status?.stepStatuses.some(
    ({ phase, step }) => phase === StepPhase.RUNNING && step?.step.case === "approval",
  ) ?? false;

/** The tones of actions in the order of a board, each with the heading of its group. */
export const GROUPS: readonly (readonly [Tone, string])[] = [
  ["failed", "Failed"],
  ["asks", "Waiting for approval"],
  ["running", "Running"],
  ["waiting", "Pending"],
  ["stopped", "Stopped"],
  ["done", "Done"],
];

const STEPS: Readonly<Record<StepPhase, readonly [Tone, string]>> = {
  [StepPhase.UNSPECIFIED]: ["waiting", "Unknown"],
  [StepPhase.PENDING]: ["waiting", "Pending"],
  [StepPhase.RUNNING]: ["running", "Running"],
  [StepPhase.DONE]: ["done", "Done"],
  [StepPhase.FAILED]: ["failed", "Failed"],
  [StepPhase.CANCELLED]: ["stopped", "Not run"],
};

/** Returns the tone and word for the state of a step. */
export const stepState = (phase: StepPhase): readonly [Tone, string] => STEPS[phase];

/** Returns what a step does, in one line. */
export function stepText(step: WorkflowStep | undefined): string {
  const does = step?.step;
  if (does?.case === "task") return firstLine(does.value.command);
  if (does?.case === "agent") return `Agent: ${firstLine(does.value.prompt)}`;
  if (does?.case === "pullRequest") return `Pull request: ${does.value.title}`;
  if (does?.case === "report") return `Report: ${does.value.outputs.map(({ key }) => key).join(", ")}`;
  if (does?.case === "approval") return `Approval: ${firstLine(does.value.message)}`;
  return "Step";
}

const firstLine = (text: string): string => text.trimStart().split("\n", 1)[0] ?? "";

/** Returns the index of the step that a page shows first: the one that failed, is running, or ended last. */
export function firstStep({ status }: WorkflowExecutionAction): number {
  const steps = status?.stepStatuses ?? [];
  const wanted =
    steps.find(({ phase }) => phase === StepPhase.FAILED || phase === StepPhase.RUNNING) ??
    steps.findLast(({ phase }) => phase === StepPhase.DONE);
  return wanted?.stepIndex ?? 0;
}

/** Returns whether an action has ended. */
export const isOver = ({ status }: WorkflowExecutionAction): boolean =>
  status?.phase === Phase.DONE || status?.phase === Phase.STOPPED;
