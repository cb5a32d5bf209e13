import { create } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import {
  AgentExecution_Status_GoalSchema as GoalSchema,
  AgentGoalStatus as Status,
} from "#gen/service/v1/agent_pb.js";
import { addGoalTime, addGoalUse, NO_GOAL_USE, newGoalUse } from "./agent-goal-use.ts";

const goal = (status: Status) => create(GoalSchema, { objective: "ship", status });
const ACTIVE = goal(Status.ACTIVE);
const at = (now: number, inTurn: boolean, more: object = {}) => ({
  goal: ACTIVE,
  now,
  fence: 1,
  tokens: 0,
  inTurn,
  ...more,
});

test("time is counted in turns, and not between them", () => {
  const begun = addGoalUse(NO_GOAL_USE, at(1_000, true));
  const going = addGoalUse(begun, at(1_500, true));
  const waiting = addGoalUse(going, at(3_000, false));
  const again = addGoalUse(waiting, at(9_000, true));
  expect([begun, going, waiting, again].map(({ timeMs }) => timeMs)).toEqual([0, 500, 2_000, 2_000]);
  expect(again.turn).toEqual({ countedAt: 9_000, fence: 1 });
});

test("only what is used while the goal is worked towards counts for it", () => {
  const begun = addGoalUse(NO_GOAL_USE, at(1_000, true, { tokens: 5 }));
  expect(begun.tokens).toBe(5);
  for (const other of [undefined, goal(Status.PAUSED), goal(Status.BLOCKED), goal(Status.COMPLETED)]) {
    const used = addGoalUse(begun, at(2_000, true, { goal: other, tokens: 7 }));
    expect([used.tokens, used.timeMs]).toEqual([5, 0]);
    // Later use is counted from there on.
    expect(addGoalUse(used, at(2_100, true)).timeMs).toBe(100);
  }
});

test("what comes after the loss of a lease is no part of the turn that was lost", () => {
  const begun = addGoalUse(NO_GOAL_USE, at(1_000, true));
  expect(addGoalUse(begun, at(60_000, false, { fence: 2 })).timeMs).toBe(0);
  expect(addGoalUse(begun, at(60_000, true, { fence: 2 })).turn).toEqual({ countedAt: 60_000, fence: 2 });
});

test("an order is counted up to, and leaves the turn as it is", () => {
  const begun = addGoalUse(NO_GOAL_USE, at(1_000, true));
  const paused = addGoalTime(begun, ACTIVE, 1_400);
  expect(paused).toEqual({ tokens: 0, timeMs: 400, turn: { countedAt: 1_400, fence: 1 } });
  expect(addGoalTime(paused, goal(Status.PAUSED), 9_000).timeMs).toBe(400);
  expect(addGoalTime(NO_GOAL_USE, ACTIVE, 9_000)).toBe(NO_GOAL_USE);
});

test("nothing was used for a new goal, and the turn in which it is set counts from then on", () => {
  const used = addGoalUse(addGoalUse(NO_GOAL_USE, at(1_000, true, { tokens: 9 })), at(2_000, true));
  const replaced = newGoalUse(used, 5_000);
  expect(replaced).toEqual({ tokens: 0, timeMs: 0, turn: { countedAt: 5_000, fence: 1 } });
  expect(addGoalUse(replaced, at(5_250, false)).timeMs).toBe(250);
  expect(newGoalUse(NO_GOAL_USE, 5_000)).toEqual(NO_GOAL_USE);
});

test("a clock that was set back takes nothing away", () => {
  const begun = addGoalUse(NO_GOAL_USE, at(1_000, true));
  expect(addGoalUse(begun, at(500, true)).timeMs).toBe(0);
});
