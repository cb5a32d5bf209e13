import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { WorkflowStepSchema } from "#gen/service/v1/workflow_pb.js";
import { done, moved, steps as plainSteps, running } from "../../../../test/harness/workflow-action.ts";
import {
  askingAction,
  hasWorkspace,
  isAsking,
  nextStepOf,
  pausedAction,
  requireApprovalStepsKnown,
  rewoundAction,
  stepsToHandOut,
} from "./approval-step.ts";

const step = (init: MessageInitShape<typeof WorkflowStepSchema>["step"]) =>
  create(WorkflowStepSchema, init && { step: init });
const task = step({ case: "task", value: { command: "true" } });
const approval = step({ case: "approval", value: { message: "Go on?" } });

describe("the steps that a runner gets", () => {
  test.each([
    ["all of them without an approval", [task, task], 0, 2],
    ["those before an approval, and it", [task, approval, task, approval, task], 0, 2],
    ["those before the next one", [task, approval, task, approval, task], 2, 4],
    ["the rest after the last one", [task, approval, task], 2, 3],
  ])("are %s", (_, steps, first, count) => {
    expect(stepsToHandOut(steps, first)).toEqual(steps.slice(0, count));
  });
});

describe("an action that comes to an approval", () => {
  const steps = [task, approval, task];
  const begun = moved(running(), ...done(0));

  test("lets go of its runner, and waits with its files", () => {
    expect(nextStepOf(begun)).toBe(1);
    expect(isAsking(begun)).toBe(false);
    const asking = askingAction(pausedAction(begun, steps, []), steps.length, 1);
    expect([isAsking(asking), hasWorkspace(asking, steps)]).toEqual([true, true]);
    expect(askingAction(asking, steps.length, 2)).toEqual(asking);
  });

  test("does not let go of it elsewhere", () => {
    expect(() => pausedAction(begun, plainSteps, [])).toThrow("step 1 is no approval");
  });

  test("begins again without its files, and says so once", () => {
    const asking = askingAction(pausedAction(begun, steps, []), steps.length, 1);
    const rewound = rewoundAction(rewoundAction(asking));
    expect([nextStepOf(rewound), hasWorkspace(rewound, steps), isAsking(rewound)]).toEqual([0, false, false]);
    expect(rewound.status?.warnings.map(({ reason }) => reason)).toEqual(["workspace_lost"]);
  });
});

test("approval steps are refused while servers run that do not know them", () => {
  expect(() => requireApprovalStepsKnown(false)).toThrow("once every server runs this release");
});
