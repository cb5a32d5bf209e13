import { create } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import {
  WorkflowExecutionActionPhase as Phase,
  WorkflowExecutionAction_Status_StepStatus_StepPhase as Step,
  WorkflowExecutionActionSchema,
} from "#gen/service/v1/workflow_pb.js";
import { isStepGoingOn, stepKey } from "./agent-step.ts";

const action = (phase: Phase, steps: Step[], attempt = 2) =>
  create(WorkflowExecutionActionSchema, {
    status: { phase, attempt, stepStatuses: steps.map((each) => ({ phase: each })) },
  });

test("a step needs its run while it runs in this attempt at its action", () => {
  const present = action(Phase.RUNNING, [Step.DONE, Step.RUNNING, Step.PENDING]);
  const goesOn = [0, 1, 2, 3].map((index) => isStepGoingOn(present, stepKey(2, index, "")));
  expect(goesOn).toEqual([false, true, false, false]);
  expect(isStepGoingOn(present, stepKey(2, 1, "score"))).toBe(true);
  expect(isStepGoingOn(present, stepKey(1, 1, ""))).toBe(false);
});

test("no step needs its run once the action is to stop, or has ended", () => {
  for (const phase of [Phase.STOPPING, Phase.STOPPED, Phase.DONE]) {
    expect(isStepGoingOn(action(phase, [Step.RUNNING]), stepKey(2, 0, ""))).toBe(false);
  }
});
