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
const NO_GOAL = Status.UNSPECIFIED;

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
  [Status.ACTIVE, "clear", NO_GOAL],
  [Status.PAUSED, "clear", NO_GOAL],
  [Status.COMPLETED, "clear", NO_GOAL],
  [Status.BLOCKED, "clear", NO_GOAL],
  [Status.USAGE_LIMITED, "clear", NO_GOAL],
  [Status.BUDGET_EXHAUSTED, "clear", NO_GOAL],
];

/**
 * The statuses that an agent may report for its goal, and the status from which it may continue by
 * itself.
 */
const REPORTABLE: readonly Status[] = [
  Status.COMPLETED,
  Status.BUDGET_EXHAUSTED,
  Status.BLOCKED,
  Status.USAGE_LIMITED,
];
const INTERRUPTED: readonly Status[] = [Status.BUDGET_EXHAUSTED, Status.BLOCKED, Status.USAGE_LIMITED];

/**
 * Returns the goal of an execution after a control input; undefined for none.
 * @param now milliseconds since 1970 UTC
 * @throws DomainError PHASE_UNSUITABLE for an action that the goal's status does not allow
 */
export function goalAfterControl(
  present: Goal | undefined,
  { action }: Control,
  now: number,
): Goal | undefined {
  const at = timestampFromMs(now);
  switch (action.case) {
    case "set": {
      const { objective, status } = action.value;
      return create(GoalSchema, { objective, status: status || Status.ACTIVE, createdAt: at, updatedAt: at });
    }
    case undefined:
      return present;
    default: {
      const status = transitionGoal(present?.status ?? NO_GOAL, action.case);
      return present && status !== NO_GOAL ? { ...present, status, updatedAt: at } : undefined;
    }
  }
}

/**
 * Returns the goal after a report of the agent; undefined when the report changes nothing. A late
 * report changes nothing either: the agent does not yet know the control input that came in the
 * meantime.
 */
export function goalAfterReport(present: Goal | undefined, reported: Status, now: number): Goal | undefined {
  if (!present || !mayReport(present.status, reported)) return undefined;
  return { ...present, status: reported, updatedAt: timestampFromMs(now) };
}

function mayReport(from: Status, to: Status): boolean {
  if (from === to) return false;
  if (from === Status.PAUSED) return to === Status.COMPLETED;
  if (from === Status.ACTIVE) return REPORTABLE.includes(to);
  return INTERRUPTED.includes(from) && (to === Status.ACTIVE || REPORTABLE.includes(to));
}

function transitionGoal(from: Status, event: GoalEvent): Status {
  const to = GOAL_TRANSITIONS.find(([status, on]) => status === from && on === event)?.[2];
  if (to !== undefined) return to;
  const name = from === NO_GOAL ? "NONE" : (Status[from] ?? "UNSPECIFIED");
  const message =
    from === NO_GOAL
      ? `the run has no goal to ${event}: set one first`
      : `a goal that is ${name} does not accept ${event}`;
  throw phaseUnsuitable("goal", name, message);
}
