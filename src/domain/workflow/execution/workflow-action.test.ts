import { clone, create, equals } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import {
  WorkflowExecutionActionPhase as Phase,
  WorkflowExecutionActionSchema,
  WorkflowExecutionSchema,
  WorkflowExecutionTriggerSchema,
} from "#gen/service/v1/workflow_pb.js";
import {
  allDone,
  done,
  end,
  execution,
  failed,
  lost,
  moved,
  phases,
  running,
  SECOND,
  START,
  steps,
  waiting,
} from "../../../../test/harness/workflow-action.ts";
import { deadlineOf, newAction, stepsOf, withSteps } from "./workflow-action.ts";
import { begunAction, revokedAction, steppedAction } from "./workflow-action-transitions.ts";
import type { StepTransition } from "./workflow-step.ts";

describe("an action", () => {
  test("waits, wanted done, within the limits of the execution", () => {
    const action = waiting();
    expect(action).toMatchObject({
      metadata: { workflowExecutionId: "execution", workflowId: "workflow", actionName: "hello" },
      spec: { session: "first", desiredPhase: Phase.DONE, limits: { maxTime: { seconds: 60n } } },
      status: { session: "first", phase: Phase.PENDING, attempt: 0 },
    });
    expect(action.status?.stepStatuses).toEqual([]);
    expect(action.metadata?.startedAt).toBeUndefined();
    expect(deadlineOf(action)).toBeUndefined();
  });

  test("is shown with its steps, which its row does not repeat", () => {
    const stored = running();
    expect(stored.status?.stepStatuses.map(({ step }) => step)).toEqual([undefined, undefined, undefined]);
    const shown = withSteps(stored, execution).status?.stepStatuses.map(({ step }) => step);
    expect(shown).toEqual(steps);
  });

  test("that never began is shown with steps that wait, or that were cancelled with it", () => {
    const shown = withSteps(waiting(), execution);
    expect(phases(shown)).toBe("PENDING PENDING PENDING");
    expect(shown.status?.stepStatuses.map(({ step }) => step)).toEqual(steps);
    expect(shown.status?.stepStatuses.map(({ stepIndex }) => stepIndex)).toEqual([0, 1, 2]);
    const stopped = revokedAction(waiting(), "second", START);
    if (!stopped) throw new Error("an action that waits can be stopped");
    expect(stopped.status?.stepStatuses).toEqual([]);
    expect(phases(withSteps(stopped, execution))).toBe("CANCELLED CANCELLED CANCELLED");
  });

  test("that reports has the steps and the limits of the report", () => {
    const action = newAction(execution, {
      id: "report",
      session: "s",
      name: "report",
      context: undefined,
      report: true,
    });
    expect(stepsOf(execution, action)).toEqual(execution.spec?.report?.steps);
    expect(action.spec?.limits).toBeUndefined();
    expect(withSteps(action, execution).status?.stepStatuses).toHaveLength(1);
  });

  test("of an agent context has the prompt as its first step", () => {
    const prompted = clone(WorkflowExecutionSchema, execution);
    if (prompted.spec) {
      prompted.spec.trigger = create(WorkflowExecutionTriggerSchema, {
        context: { context: { case: "agent", value: { prompt: "look around" } } },
      });
    }
    const shown = stepsOf(prompted, waiting());
    expect(shown.map(({ step }) => step.case)).toEqual(["agent", "task", "task", "report"]);
    expect(shown[0]?.step.value).toMatchObject({ prompt: "look around" });
  });

  test("begins with an attempt, and keeps when it first did", () => {
    const first = running();
    expect(first.status).toMatchObject({ phase: Phase.RUNNING, attempt: 1, environmentId: "environment 1" });
    const again = begunAction(end(first, lost()), {
      environmentId: "environment 2",
      attempt: 2,
      stepCount: steps.length,
      now: START + SECOND,
    });
    expect(again.status).toMatchObject({ attempt: 2, environmentId: "environment 2" });
    expect(again.metadata?.startedAt).toEqual(first.metadata?.startedAt);
    expect(deadlineOf(again)).toBe(START + 60 * SECOND);
  });
});

describe("the steps of an action", () => {
  test("move while a runner has it, and at no other time", () => {
    const transition: StepTransition = { stepIndex: 0, state: "running" };
    expect(phases(moved(running(), transition))).toBe("RUNNING PENDING PENDING");
    for (const action of [waiting(), end(allDone(), { kind: "done" })]) {
      expect(() => moved(action, transition)).toThrow("no runner has it");
    }
  });

  test("run in their order", () => {
    expect(() => moved(running(), { stepIndex: 1, state: "running" })).toThrow(
      "step 0 is PENDING: steps run in their order",
    );
    expect(() => moved(running(), { stepIndex: 0, state: "done" })).toThrow(
      'the event "finish" is not allowed',
    );
    expect(() => moved(running(), { stepIndex: 3, state: "running" })).toThrow("the action has 3 steps");
  });

  test("can be reported again, which changes nothing", () => {
    const once = moved(running(), ...done(0), { stepIndex: 1, state: "running" });
    const again = steppedAction(
      once,
      steps,
      [...done(0), { stepIndex: 1, state: "running" }],
      START + SECOND,
    );
    expect(again).toMatchObject({ began: false, ended: false, values: {} });
    expect(equals(WorkflowExecutionActionSchema, again.action, once)).toBe(true);
    const failing = moved(running(), ...failed(0));
    expect(phases(moved(failing, ...failed(0), ...done(0)))).toBe("FAILED CANCELLED CANCELLED");
    expect(() => moved(once, { stepIndex: 0, state: "failed" })).toThrow(
      'the event "fail" is not allowed while the step is DONE',
    );
    expect(() => moved(failing, { stepIndex: 1, state: "running" })).toThrow("steps run in their order");
  });

  test("give their outputs when they are read and accepted, and fail otherwise", () => {
    const before = moved(running(), ...done(0), ...done(1));
    const { values } = steppedAction(before, steps, done(2, "7\n"), START);
    expect(values).toMatchObject({ lines: { value: { case: "intValue", value: 7n } } });
    const outcomes = [done(2, "-7"), done(2, "seven"), [done(2)[0], { stepIndex: 2, state: "done" }]];
    expect(
      outcomes.map((transitions) => {
        const { action, values: none } = steppedAction(before, steps, transitions as StepTransition[], START);
        const step = action.status?.stepStatuses[2];
        return [step?.error?.reason, step?.error?.meta, step?.failureMessage, Object.keys(none)];
      }),
    ).toEqual([
      ["output_invalid", { output: "lines" }, "output lines is less than 0", []],
      ["output_invalid", { output: "lines" }, "output lines is not a whole number in decimal digits", []],
      ["output_missing", { output: "lines" }, "output lines was not given", []],
    ]);
  });

  test("keep the page of the pull request that they opened", () => {
    const action = moved(
      running(),
      { stepIndex: 0, state: "running" },
      { stepIndex: 0, state: "done", pullRequestUrl: "https://git.example.org/team/hello/pulls/1" },
    );
    expect(action.status?.stepStatuses[0]?.pullRequestUrl).toBe("https://git.example.org/team/hello/pulls/1");
  });
});
