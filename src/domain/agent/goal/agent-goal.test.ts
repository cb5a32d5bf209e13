import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import {
  AgentControlInput_GoalSchema as ControlSchema,
  type AgentExecution_Status_Goal as Goal,
  AgentExecution_Status_GoalSchema as GoalSchema,
  AgentGoalStatus as Status,
} from "#gen/service/v1/agent_pb.js";
import { replay } from "../../../../test/harness/seed.ts";
import { DomainError } from "../../error.ts";
import { GOAL_TRANSITIONS, type GoalEvent, goalAfterControl, goalAfterReport } from "./agent-goal.ts";

const NOW = 1_000;
const STATUSES = [1, 2, 3, 4, 5, 6] as Status[];
const EVENTS: GoalEvent[] = ["pause", "resume", "complete", "clear"];

const order = (event: GoalEvent) => create(ControlSchema, { action: { case: event, value: {} } });
const set = (objective: string, status?: Status) =>
  create(ControlSchema, {
    action: { case: "set", value: { objective, ...(status !== undefined && { status }) } },
  });
const goal = (status: Status): Goal =>
  create(GoalSchema, {
    objective: "ship",
    status,
    createdAt: timestampFromMs(1),
    updatedAt: timestampFromMs(1),
  });

/** Returns the status of the goal after a control input; undefined for one that is rejected. */
function ordered(present: Goal | undefined, event: GoalEvent): Status | undefined {
  try {
    return goalAfterControl(present, order(event), NOW)?.status ?? Status.UNSPECIFIED;
  } catch (error) {
    expect(error).toBeInstanceOf(DomainError);
    return undefined;
  }
}

describe("an order", () => {
  test("does what the table says, and nothing else", () => {
    for (const from of STATUSES) {
      for (const event of EVENTS) {
        const to = GOAL_TRANSITIONS.find(([status, on]) => status === from && on === event)?.[2];
        expect([from, event, ordered(goal(from), event)]).toEqual([from, event, to]);
      }
    }
  });

  test("about a goal that there is not is refused, with what to do", () => {
    for (const event of EVENTS) expect(ordered(undefined, event)).toBeUndefined();
    expect(() => goalAfterControl(undefined, order("pause"), NOW)).toThrow("no goal to pause: set one first");
    expect(() => goalAfterControl(goal(Status.COMPLETED), order("pause"), NOW)).toThrow(
      "a goal that is COMPLETED does not accept",
    );
  });

  test("that sets a goal puts it in place of the one before, active unless it says otherwise", () => {
    for (const present of [undefined, ...STATUSES.map(goal)]) {
      expect(goalAfterControl(present, set("fly"), NOW)).toEqual({
        ...goal(Status.ACTIVE),
        objective: "fly",
        createdAt: timestampFromMs(NOW),
        updatedAt: timestampFromMs(NOW),
      });
    }
    expect(goalAfterControl(undefined, set("fly", Status.UNSPECIFIED), NOW)?.status).toBe(Status.ACTIVE);
    expect(goalAfterControl(undefined, set("fly", Status.PAUSED), NOW)?.status).toBe(Status.PAUSED);
  });

  test("keeps what is to be reached and since when, and says when it changed", () => {
    expect(goalAfterControl(goal(Status.ACTIVE), order("pause"), NOW)).toEqual({
      ...goal(Status.PAUSED),
      updatedAt: timestampFromMs(NOW),
    });
  });
});

describe("a report", () => {
  test("of an agent at work tells what it found out", () => {
    for (const reported of [
      Status.COMPLETED,
      Status.BUDGET_EXHAUSTED,
      Status.BLOCKED,
      Status.USAGE_LIMITED,
    ]) {
      expect(goalAfterReport(goal(Status.ACTIVE), reported, NOW)?.status).toBe(reported);
    }
    expect(goalAfterReport(goal(Status.BLOCKED), Status.ACTIVE, NOW)?.status).toBe(Status.ACTIVE);
  });

  test("never takes back what people ordered, except when the goal is reached already", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...STATUSES),
        fc.constantFrom(0 as Status, ...STATUSES),
        (from, reported) => {
          const after = goalAfterReport(goal(from), reported, NOW);
          if (from === Status.COMPLETED) expect(after).toBeUndefined();
          if (from === Status.PAUSED) expect(after === undefined || reported === Status.COMPLETED).toBe(true);
          if (reported === Status.PAUSED || reported === from || reported === 0)
            expect(after).toBeUndefined();
          if (after) expect(after.status).toBe(reported);
        },
      ),
      replay,
    );
    expect(goalAfterReport(undefined, Status.ACTIVE, NOW)).toBeUndefined();
  });
});
