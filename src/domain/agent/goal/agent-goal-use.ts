import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { AgentGoalStatus, type AgentExecution_Status_Goal as Goal } from "#gen/service/v1/agent_pb.js";

/** The use that counts for an execution's goal, and the state needed to continue counting. */
export interface GoalUse {
  /** Tokens read and written. */
  readonly tokens: number;
  readonly timeMs: number;
  /** The current turn; null between turns. */
  readonly turn: Turn | null;
}

interface Turn {
  /** Time up to which use was counted, in milliseconds since 1970 UTC. */
  readonly countedAt: number;
  /**
   * Fence of the lease that the turn runs under: nothing after the loss of that lease belongs to
   * the turn.
   */
  readonly fence: number;
}

/** The use of a goal that no agent has worked towards. */
export const NO_GOAL_USE: GoalUse = { tokens: 0, timeMs: 0, turn: null };

/** A moment at which the use since the last count is added. */
export interface CountedMoment {
  /** The goal up to now; undefined for none. */
  readonly goal: Goal | undefined;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
  readonly fence: number;
  /** Tokens that were read and written since the last count. */
  readonly tokens: number;
  /** True when a turn is running from now on. */
  readonly inTurn: boolean;
}

/** Adds the use up to a moment. Only use while the goal is active counts. */
export function addGoalUse(
  { tokens, timeMs, turn }: GoalUse,
  { goal, now, fence, tokens: used, inTurn }: CountedMoment,
): GoalUse {
  const isActive = goal?.status === AgentGoalStatus.ACTIVE;
  const wentOn = turn?.fence === fence ? Math.max(0, now - turn.countedAt) : 0;
  return {
    tokens: isActive ? tokens + used : tokens,
    timeMs: isActive ? timeMs + wentOn : timeMs,
    turn: inTurn ? { countedAt: now, fence } : null,
  };
}

/** Adds the time up to a control input about the goal, which does not change the turn. */
export function addGoalTime(use: GoalUse, goal: Goal | undefined, now: number): GoalUse {
  if (!use.turn) return use;
  return addGoalUse(use, { goal, now, fence: use.turn.fence, tokens: 0, inTurn: true });
}

/** Returns the use of a new goal, set during a turn or between two. */
export function newGoalUse({ turn }: GoalUse, now: number): GoalUse {
  return { tokens: 0, timeMs: 0, turn: turn && { ...turn, countedAt: now } };
}

/** Puts the use of a goal into its message. */
export function applyGoalUse(goal: Goal, { tokens, timeMs }: GoalUse): void {
  goal.tokensUsed = BigInt(tokens);
  goal.timeUsed = durationFromMs(timeMs);
}
