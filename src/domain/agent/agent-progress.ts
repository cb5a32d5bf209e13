import { create } from "@bufbuild/protobuf";
import {
  type ReportAgentRequest_Usage as Usage,
  ReportAgentRequest_UsageSchema as UsageSchema,
} from "#gen/runner/v1/agent_work_service_pb.js";
import type { AgentExecution_Status, AgentMode } from "#gen/service/v1/agent_pb.js";
import { type GoalUse, showGoalUse, UNUSED } from "./goal/agent-goal-use.ts";

/** What changes in a run on its own, too often for a row of the record each time. */
export interface AgentProgress {
  /** How many times it changed: the version of the run's status counts them. */
  readonly changes: number;
  readonly usage: Usage;
  readonly mode: AgentMode;
  /** What the agent says of what it does; empty for nothing. */
  readonly currentActivity: string;
  readonly goalUse: GoalUse;
}

/** What a runner tells of it; what is left out is as before. */
export interface ProgressNews {
  readonly usage?: Usage | undefined;
  /** Unspecified: as before. */
  readonly mode?: AgentMode;
  /** Empty: as before. */
  readonly currentActivity?: string;
}

/** The progress of a run that has not begun. */
export function firstProgress(mode: AgentMode): AgentProgress {
  return { changes: 0, usage: create(UsageSchema), mode, currentActivity: "", goalUse: UNUSED };
}

/** The progress after news; undefined when they tell nothing new. Used tokens and rounds never fall. */
export function progressAfter(present: AgentProgress, news: ProgressNews): AgentProgress | undefined {
  const usage = news.usage ? usageAfter(present.usage, news.usage) : present.usage;
  const mode = news.mode || present.mode;
  const currentActivity = news.currentActivity || present.currentActivity;
  const isKnown =
    mode === present.mode && currentActivity === present.currentActivity && isSame(usage, present.usage);
  return isKnown ? undefined : { ...present, changes: present.changes + 1, usage, mode, currentActivity };
}

/** Puts progress into the status of a run that is about to be answered. */
export function showProgress(
  status: AgentExecution_Status,
  { changes, usage, mode, goalUse }: AgentProgress,
): void {
  if (status.goal) showGoalUse(status.goal, goalUse);
  status.statusVersion += BigInt(changes);
  status.mode = mode;
  status.iterations = usage.iterations;
  status.inputTokensUsed = usage.inputTokens;
  status.outputTokensUsed = usage.outputTokens;
  status.contextWindowLength = usage.contextWindowLength;
  status.cachedCreationTokensUsed = usage.cachedCreationTokens;
  status.cachedInputTokensUsed = usage.cachedInputTokens;
  status.contextWindowLimit = usage.contextWindowLimit;
}

/** Tokens that were read and written from one state to a later one. */
export function tokensBetween({ usage: before }: AgentProgress, { usage: after }: AgentProgress): number {
  return Number(after.inputTokens - before.inputTokens + after.outputTokens - before.outputTokens);
}

const RISING = [
  "iterations",
  "inputTokens",
  "outputTokens",
  "cachedCreationTokens",
  "cachedInputTokens",
] as const;
const FREE = ["contextWindowLength", "contextWindowLimit"] as const;

function usageAfter(present: Usage, told: Usage): Usage {
  const usage = create(UsageSchema, told);
  for (const name of RISING) if (usage[name] < present[name]) usage[name] = present[name];
  return usage;
}

function isSame(one: Usage, other: Usage): boolean {
  return [...RISING, ...FREE].every((name) => one[name] === other[name]);
}
