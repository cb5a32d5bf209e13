import { describe, expect, test } from "@jest/globals";
import {
  WorkflowExecutionActionPhase as Phase,
  type WorkflowExecutionAction,
} from "#gen/service/v1/workflow_pb.js";
import {
  allDone,
  done,
  end,
  failed,
  lost,
  moved,
  phases,
  reasons,
  running,
  SECOND,
  START,
  waiting,
} from "../../../../test/harness/workflow-action.ts";
import { countedPhaseOf, hasFailed, phaseOf } from "./workflow-action.ts";
import type { ActionEnd } from "./workflow-action-end.ts";
import { cancelledAction, expiredAction, mustStop, revokedAction } from "./workflow-action-transitions.ts";
import { workflowError } from "./workflow-error.ts";

describe("the end of an action", () => {
  test("is done when every step is", () => {
    const action = end(allDone(), { kind: "done" });
    expect([phaseOf(action), hasFailed(action), countedPhaseOf(action)]).toEqual([Phase.DONE, false, "done"]);
    expect(action.metadata?.finishedAt).toBeDefined();
  });

  test("is not done while a step is not", () => {
    expect(() => end(moved(running(), ...done(0)), { kind: "done" })).toThrow(
      "the action is not done: a step of it is not",
    );
  });

  test("is a failure once a step failed, whatever the runner says, and cancels the later steps", () => {
    const failing = moved(running(), ...done(0), ...failed(1));
    expect(phases(failing)).toBe("DONE FAILED CANCELLED");
    expect(mustStop(failing)).toBe(true);
    for (const how of [
      { kind: "done" },
      { kind: "stopped" },
      lost(),
      { kind: "failed", error: workflowError("step_failed", "reported twice") },
    ] as ActionEnd[]) {
      const action = end(failing, how);
      expect([phaseOf(action), countedPhaseOf(action)]).toEqual([Phase.DONE, "failed"]);
      expect(action.status?.failures.map(({ message }) => message)).toEqual(["step 1 failed"]);
      expect(action.status?.failureMessage).toBe("step 1 failed");
    }
  });

  test("is a failure for what kept it from its steps", () => {
    const error = workflowError("environment_refused", "a policy forbids it");
    for (const present of [waiting(), running()]) {
      const action = end(present, { kind: "failed", error });
      expect(reasons(action)).toEqual(["environment_refused"]);
      expect(phases(action)).toBe("CANCELLED CANCELLED CANCELLED");
    }
  });

  test("is the work that was done although its runner was lost before it could say so", () => {
    const action = end(allDone(), lost());
    expect([countedPhaseOf(action), action.status?.warnings.map(({ reason }) => reason)]).toEqual([
      "done",
      ["attempt_lost"],
    ]);
  });

  test("of a lost attempt lets it begin again, with a warning", () => {
    const action = end(moved(running(), ...done(0), { stepIndex: 1, state: "running" }), lost());
    expect([phaseOf(action), countedPhaseOf(action)]).toEqual([Phase.PENDING, "pending"]);
    expect(phases(action)).toBe("PENDING PENDING PENDING");
    expect(action.status?.stepStatuses.some((step) => step.startedAt || step.finishedAt)).toBe(false);
    expect(action.status?.warnings).toMatchObject([
      { reason: "attempt_lost", meta: { runner_id: "r", attempt: "1" }, retry: { retriable: true } },
    ]);
    expect(action.metadata?.finishedAt).toBeUndefined();
  });

  test("is a failure when no attempt is left, or no time", () => {
    expect(reasons(end(running(), lost(true)))).toEqual(["attempts_exhausted"]);
    expect(phaseOf(end(running(), lost(), START + 60 * SECOND - 1))).toBe(Phase.PENDING);
    expect(reasons(end(running(), lost(), START + 60 * SECOND))).toEqual(["max_time_exceeded"]);
  });

  test("is a failure when the runner stops of itself", () => {
    expect(reasons(end(running(), { kind: "stopped" }))).toEqual(["stopped_by_runner"]);
  });

  test("after its longest time is a failure that says how long that was", () => {
    const expired = expiredAction(running());
    if (!expired) throw new Error("it does not run");
    expect([phaseOf(expired), expired.spec?.session]).toEqual([Phase.STOPPING, "first"]);
    for (const how of [{ kind: "stopped" }, lost()] as ActionEnd[]) {
      const action = end(expired, how);
      expect([countedPhaseOf(action), reasons(action)]).toEqual(["failed", ["max_time_exceeded"]]);
      expect(action.status?.failures[0]?.meta).toEqual({ max_time_seconds: "60" });
    }
    expect(expiredAction(waiting())).toBeUndefined();
  });
});

describe("the cancellation of an action", () => {
  const cancelled = (present: WorkflowExecutionAction) => cancelledAction(present, "second", START);

  test("stops one that waits at once", () => {
    const action = cancelled(waiting());
    expect(action).toMatchObject({
      spec: { session: "second", desiredPhase: Phase.STOPPED },
      status: { session: "second", phase: Phase.STOPPED },
    });
    expect(action && phases(action)).toBe("CANCELLED CANCELLED CANCELLED");
  });

  test("lets one that runs end, which then is stopped, or was done before", () => {
    const stopping = cancelled(moved(running(), ...done(0), { stepIndex: 1, state: "running" }));
    if (!stopping) throw new Error("nothing was cancelled");
    expect([phaseOf(stopping), mustStop(stopping), countedPhaseOf(stopping)]).toEqual([
      Phase.STOPPING,
      true,
      "running",
    ]);
    for (const how of [{ kind: "stopped" }, lost(), lost(true)] as ActionEnd[]) {
      const action = end(stopping, how);
      expect([countedPhaseOf(action), phases(action)]).toEqual(["stopped", "DONE CANCELLED CANCELLED"]);
    }
    const atTheEnd = cancelled(allDone());
    expect(atTheEnd && countedPhaseOf(end(atTheEnd, { kind: "stopped" }))).toBe("done");
  });

  test("changes nothing of one that has ended or is stopping", () => {
    const stopping = cancelled(running());
    expect(stopping && cancelled(stopping)).toBeUndefined();
    expect(cancelled(end(allDone(), { kind: "done" }))).toBeUndefined();
    expect(revokedAction(end(allDone(), { kind: "done" }), "second", START)).toBeUndefined();
  });

  test("by a block waits for nobody", () => {
    for (const present of [waiting(), running(), cancelled(running())]) {
      const action = present && revokedAction(present, "third", START);
      expect(action && countedPhaseOf(action)).toBe("stopped");
    }
  });
});
