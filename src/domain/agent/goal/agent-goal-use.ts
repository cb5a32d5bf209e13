import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { AgentGoalStatus, type AgentExecution_Status_Goal as Goal } from "#gen/service/v1/agent_pb.js";

/** What was used for the goal of a run, and what it takes to go on counting. */
export interface GoalUse {
  /** Tokens read and written. */
  readonly tokens: number;
  readonly timeMs: number;
  /** The turn that is going on; null between turns. */
  readonly turn: Turn | null;
}

interface Turn {
  /** Until when it was counted, in milliseconds since 1970 UTC. */
  readonly countedAt: number;
  /** Fence of the lease that it goes on under: what comes after the loss of that lease is no part of it. */
  readonly fence: number;
}

/** Nothing was used for a goal that nobody has worked towards. */
export const UNUSED: GoalUse = { tokens: 0, timeMs: 0, turn: null };

/** A moment at which is counted what was used since the last one. */
export interface CountedMoment {
  /** The goal until now; undefined for none. */
  readonly goal: Goal | undefined;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
  readonly fence: number;
  /** Tokens that were read and written since the last count. */
  readonly tokens: number;
  /** Whether a turn goes on from now on. */
  readonly inTurn: boolean;
}

/** Counts what was used up to a moment. Only what is used while the goal is worked towards counts for it. */
export function countedUse(
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

/** Counts the time up to an order about the goal, which leaves the turn as it is. */
export function countedUntil(use: GoalUse, goal: Goal | undefined, now: number): GoalUse {
  if (!use.turn) return use;
  return countedUse(use, { goal, now, fence: use.turn.fence, tokens: 0, inTurn: true });
}

/** The use of a goal that is new, in the middle of a turn or between two. */
export function useOfNewGoal({ turn }: GoalUse, now: number): GoalUse {
  return { tokens: 0, timeMs: 0, turn: turn && { ...turn, countedAt: now } };
}

/** Puts what was used for a goal into it. */
export function showGoalUse(goal: Goal, { tokens, timeMs }: GoalUse): void {
  goal.tokensUsed = BigInt(tokens);
  goal.timeUsed = durationFromMs(timeMs);
}
