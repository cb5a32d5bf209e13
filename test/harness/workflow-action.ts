import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  WorkflowExecutionAction_Status_StepStatus_StepPhase as Step,
  type WorkflowExecutionAction,
  WorkflowExecutionSchema,
  type WorkflowStepSchema,
} from "#gen/service/v1/workflow_pb.js";
import { newAction, withSteps } from "../../src/domain/workflow/execution/workflow-action.ts";
import { type ActionEnd, endedAction } from "../../src/domain/workflow/execution/workflow-action-end.ts";
import {
  begunAction,
  steppedAction,
} from "../../src/domain/workflow/execution/workflow-action-transitions.ts";
import { workflowError } from "../../src/domain/workflow/execution/workflow-error.ts";
import type { StepTransition } from "../../src/domain/workflow/execution/workflow-step.ts";

export const START = Date.UTC(2026, 0, 1);
export const SECOND = 1_000;

const task = (command: string): MessageInitShape<typeof WorkflowStepSchema> => ({
  step: { case: "task", value: { command } },
});
const report: MessageInitShape<typeof WorkflowStepSchema> = {
  step: {
    case: "report",
    value: {
      outputs: [{ key: "lines", title: "Lines", schema: { case: "integer", value: { min: 0 } } }],
    },
  },
};

export const execution = create(WorkflowExecutionSchema, {
  id: "execution",
  metadata: { workflowId: "workflow" },
  spec: {
    action: {
      limits: { maxParallel: 1, maxTotal: 1, perExecution: { maxTime: { seconds: 60n } } },
      steps: [task("one"), task("two"), report],
    },
    report: { limits: { maxParallel: 1, maxTotal: 1 }, steps: [task("sum up")] },
  },
});
export const steps = execution.spec?.action?.steps ?? [];

export const waiting = () =>
  newAction(execution, { id: "action", session: "first", name: "hello", context: undefined, report: false });
export const running = (attempt = 1, present = waiting()) =>
  begunAction(present, {
    environmentId: `environment ${attempt}`,
    attempt,
    stepCount: steps.length,
    now: START,
  });
export const moved = (action: WorkflowExecutionAction, ...moves: StepTransition[]) =>
  steppedAction(action, steps, moves, START).action;
export const lines = (text: string) => ({ lines: new TextEncoder().encode(text) });
export const done = (stepIndex: number, text = "7"): StepTransition[] => [
  { stepIndex, state: "running" },
  { stepIndex, state: "done", outputs: lines(text) },
];
export const allDone = (action = running()) => moved(action, ...done(0), ...done(1), ...done(2));
export const failed = (stepIndex: number): StepTransition[] => [
  { stepIndex, state: "running" },
  { stepIndex, state: "failed", error: workflowError("step_failed", `step ${stepIndex} failed`) },
];
export const end = (action: WorkflowExecutionAction, how: ActionEnd, now = START) =>
  endedAction(action, how, [], now);
export const lost = (exhausted = false): ActionEnd => ({
  kind: "lost",
  runnerId: "r",
  attempt: 1,
  exhausted,
});
export const phases = (action: WorkflowExecutionAction) =>
  withSteps(action, execution)
    .status?.stepStatuses.map(({ phase }) => Step[phase])
    .join(" ");
export const reasons = ({ status }: WorkflowExecutionAction) => status?.failures.map(({ reason }) => reason);
