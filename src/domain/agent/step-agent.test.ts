import { create } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import {
  WorkflowExecutionActionPhase as Phase,
  WorkflowExecutionAction_Status_StepStatus_StepPhase as Step,
  WorkflowExecutionActionSchema,
  WorkflowStepSchema,
} from "#gen/service/v1/workflow_pb.js";
import { isStepRunning, promptOfStep, stepKey } from "./step-agent.ts";

const action = (phase: Phase, steps: Step[], attempt = 2) =>
  create(WorkflowExecutionActionSchema, {
    status: { phase, attempt, stepStatuses: steps.map((each) => ({ phase: each })) },
  });

test("a step needs its run while it runs in this attempt at its action", () => {
  const present = action(Phase.RUNNING, [Step.DONE, Step.RUNNING, Step.PENDING]);
  const goesOn = [0, 1, 2, 3].map((index) => isStepRunning(present, stepKey(2, index, "")));
  expect(goesOn).toEqual([false, true, false, false]);
  expect(isStepRunning(present, stepKey(2, 1, "score"))).toBe(true);
  expect(isStepRunning(present, stepKey(1, 1, ""))).toBe(false);
});

test("no step needs its run once the action is to stop, or has ended", () => {
  for (const phase of [Phase.STOPPING, Phase.STOPPED, Phase.DONE]) {
    expect(isStepRunning(action(phase, [Step.RUNNING]), stepKey(2, 0, ""))).toBe(false);
  }
});

test("the prompt of a step is that of an agent step, or of one output of a report", () => {
  const outputs = [
    { key: "score", extraction: { case: "prompt", value: "how good?" } },
    { key: "lines", extraction: { case: "command", value: "wc -l" } },
  ] as const;
  const steps = [
    create(WorkflowStepSchema, { step: { case: "agent", value: { prompt: "fix it" } } }),
    create(WorkflowStepSchema, { step: { case: "report", value: { outputs: [...outputs] } } }),
    create(WorkflowStepSchema, { step: { case: "task", value: { command: "true" } } }),
  ];
  expect([promptOfStep(steps, 0, ""), promptOfStep(steps, 1, "score")]).toEqual(["fix it", "how good?"]);
  for (const index of [1, 2, 3]) expect(() => promptOfStep(steps, index, "")).toThrow("is no agent step");
  for (const [index, key] of [
    [0, "score"],
    [1, "lines"],
    [1, "other"],
    [2, "score"],
    [3, "score"],
  ] as const) {
    expect(() => promptOfStep(steps, index, key)).toThrow("has no output of that key that a prompt asks for");
  }
});
