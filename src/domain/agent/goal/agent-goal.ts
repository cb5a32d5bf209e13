import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type AgentControlInput_Goal as Control,
  type AgentExecution_Status_Goal as Goal,
  AgentExecution_Status_GoalSchema as GoalSchema,
  AgentGoalStatus as Status,
} from "#gen/service/v1/agent_pb.js";
import { phaseUnsuitable } from "../../error.ts";
import type { Transition } from "../../workflow/execution/workflow-transitions.ts";

export type GoalEvent = "pause" | "resume" | "complete" | "clear";

/** The goal status of an execution without a goal. */
const NONE = Status.UNSPECIFIED;

/**
 * The transitions that people may cause. `set` is not among them: it gives an execution a new goal
 * in any state, with the status that the request names.
 */
export const GOAL_TRANSITIONS: readonly Transition<Status, GoalEvent>[] = [
  [Status.ACTIVE, "pause", Status.PAUSED],
  [Status.BLOCKED, "pause", Status.PAUSED],
  [Status.USAGE_LIMITED, "pause", Status.PAUSED],
  [Status.PAUSED, "resume", Status.ACTIVE],
  [Status.BLOCKED, "resume", Status.ACTIVE],
  [Status.USAGE_LIMITED, "resume", Status.ACTIVE],
  [Status.BUDGET_EXHAUSTED, "resume", Status.ACTIVE],
  [Status.ACTIVE, "complete", Status.COMPLETED],
  [Status.PAUSED, "complete", Status.COMPLETED],
  [Status.BLOCKED, "complete", Status.COMPLETED],
  [Status.USAGE_LIMITED, "complete", Status.COMPLETED],
  [Status.BUDGET_EXHAUSTED, "complete", Status.COMPLETED],
  [Status.ACTIVE, "clear", NONE],
  [Status.PAUSED, "clear", NONE],
  [Status.COMPLETED, "clear", NONE],
  [Status.BLOCKED, "clear", NONE],
  [Status.USAGE_LIMITED, "clear", NONE],
  [Status.BUDGET_EXHAUSTED, "clear", NONE],
];

/**
 * The statuses that an agent may report for its goal, and the status from which it may continue by
 * itself.
 */
const FOUND: readonly Status[] = [
  Status.COMPLETED,
  Status.BUDGET_EXHAUSTED,
  Status.BLOCKED,
  Status.USAGE_LIMITED,
];
const STUCK: readonly Status[] = [Status.BUDGET_EXHAUSTED, Status.BLOCKED, Status.USAGE_LIMITED];

/**
 * Returns the goal of an execution after a control input; undefined for none.
 * @param now milliseconds since 1970 UTC
 * @throws DomainError PHASE_UNSUITABLE for an action that the goal's status does not allow
 */
export function orderedGoal(present: Goal | undefined, { action }: Control, now: number): Goal | undefined {
  const at = timestampFromMs(now);
  switch (action.case) {
    case "set": {
      const { objective, status } = action.value;
      return create(GoalSchema, { objective, status: status || Status.ACTIVE, createdAt: at, updatedAt: at });
    }
    case undefined:
      return present;
    default: {
      const status = movedGoal(present?.status ?? NONE, action.case);
      return present && status !== NONE ? { ...present, status, updatedAt: at } : undefined;
    }
  }
}

/**
 * Returns the goal after a report of the agent; undefined when the report changes nothing. A late
 * report changes nothing either: the agent does not yet know the control input that came in the
 * meantime.
 */
export function reportedGoal(present: Goal | undefined, told: Status, now: number): Goal | undefined {
  if (!present || !follows(present.status, told)) return undefined;
  return { ...present, status: told, updatedAt: timestampFromMs(now) };
}

function follows(from: Status, to: Status): boolean {
  if (from === to) return false;
  if (from === Status.PAUSED) return to === Status.COMPLETED;
  if (from === Status.ACTIVE) return FOUND.includes(to);
  return STUCK.includes(from) && (to === Status.ACTIVE || FOUND.includes(to));
}

function movedGoal(from: Status, event: GoalEvent): Status {
  const to = GOAL_TRANSITIONS.find(([status, on]) => status === from && on === event)?.[2];
  if (to !== undefined) return to;
  const name = from === NONE ? "NONE" : (Status[from] ?? "UNSPECIFIED");
  const message =
    from === NONE
      ? `the run has no goal to ${event}: set one first`
      : `the goal is ${name}, in which it takes no ${event}`;
  throw phaseUnsuitable("goal", name, message);
}
