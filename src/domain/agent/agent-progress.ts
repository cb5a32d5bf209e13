import { create } from "@bufbuild/protobuf";
import {
  type ReportAgentRequest_Usage as Usage,
  ReportAgentRequest_UsageSchema as UsageSchema,
} from "#gen/runner/v1/agent_work_service_pb.js";
import {
  type AgentExecution_Status,
  type AgentForkAbility,
  type AgentMode,
  AgentExecution_Phase as Phase,
  AgentExecution_Status_Slot as Slot,
} from "#gen/service/v1/agent_pb.js";
import type { ForkPoint } from "./conversation/agent-fork.ts";
import { applyLostTurn, type LostTurn } from "./conversation/lost-turn.ts";
import { applyGoalUse, type GoalUse, NO_GOAL_USE } from "./goal/agent-goal-use.ts";

/** The part of an execution that changes too often to record every change. */
export interface AgentProgress {
  /** Number of changes; the version of the execution's status includes it. */
  readonly changes: number;
  readonly usage: Usage;
  readonly mode: AgentMode;
  /** The agent's description of its current activity; empty for none. */
  readonly currentActivity: string;
  readonly goalUse: GoalUse;
  /** Place of the last input whose turn is over, in the order of delivery; left out by older releases. */
  readonly doneThrough?: number;
  /** Left out for none. */
  readonly lostTurn?: LostTurn;
  /** The slot of an execution whose agent can continue in another process; left out for others. */
  readonly slot?: Slot.SHARED | Slot.GIVEN_BACK | undefined;
  /** The places at which the agent can fork its conversation; left out until the agent has reported it. */
  readonly forkAbility?: AgentForkAbility;
  /** The place at which this execution forks another conversation; left out if it is not a fork. */
  readonly fork?: ForkPoint;
}

/** A runner's update of the progress; fields that are left out keep their values. */
export interface ProgressUpdate {
  readonly usage?: Usage | undefined;
  /** Unspecified means unchanged. */
  readonly mode?: AgentMode;
  /** Empty means unchanged. */
  readonly currentActivity?: string;
  readonly slot?: AgentProgress["slot"];
  /** Unspecified means unchanged. */
  readonly forkAbility?: AgentForkAbility;
}

/** Returns the progress of an execution that has not begun. */
export function initialProgress(mode: AgentMode): AgentProgress {
  return {
    changes: 0,
    usage: create(UsageSchema),
    mode,
    currentActivity: "",
    goalUse: NO_GOAL_USE,
    doneThrough: 0,
  };
}

/** Returns the progress with its lost turn replaced; an undefined one removes it. */
export function withLostTurn(
  { lostTurn: _, ...present }: AgentProgress,
  lostTurn: LostTurn | undefined,
): AgentProgress {
  return { ...present, changes: present.changes + 1, ...(lostTurn && { lostTurn }) };
}

/**
 * Returns the progress after an update; undefined when nothing changes. Used tokens and iterations
 * never decrease.
 */
export function updatedProgress(present: AgentProgress, update: ProgressUpdate): AgentProgress | undefined {
  const usage = update.usage ? mergedUsage(present.usage, update.usage) : present.usage;
  const mode = update.mode || present.mode;
  const currentActivity = update.currentActivity || present.currentActivity;
  const slot = "slot" in update ? update.slot : present.slot;
  const forkAbility = update.forkAbility || present.forkAbility;
  const isUnchanged =
    mode === present.mode &&
    currentActivity === present.currentActivity &&
    slot === present.slot &&
    forkAbility === present.forkAbility &&
    isSame(usage, present.usage);
  if (isUnchanged) return undefined;
  const changed = { usage, mode, currentActivity, slot, ...(forkAbility && { forkAbility }) };
  return { ...present, changes: present.changes + 1, ...changed };
}

/** Puts progress into the status of an execution before it is sent. */
export function applyProgress(
  status: AgentExecution_Status,
  { changes, usage, mode, goalUse, lostTurn, slot, forkAbility }: AgentProgress,
): void {
  applyLostTurn(status, lostTurn);
  status.slot = shownSlot(status.phase, slot);
  if (status.goal) applyGoalUse(status.goal, goalUse);
  status.statusVersion += BigInt(changes);
  if (forkAbility) status.forkAbility = forkAbility;
  status.mode = mode;
  status.iterations = usage.iterations;
  status.inputTokensUsed = usage.inputTokens;
  status.outputTokensUsed = usage.outputTokens;
  status.contextWindowLength = usage.contextWindowLength;
  status.cachedCreationTokensUsed = usage.cachedCreationTokens;
  status.cachedInputTokensUsed = usage.cachedInputTokens;
  status.contextWindowLimit = usage.contextWindowLimit;
}

function shownSlot(phase: Phase, slot: AgentProgress["slot"]): Slot {
  if (phase === Phase.STOPPED) return Slot.UNSPECIFIED;
  return slot ?? (phase === Phase.PENDING ? Slot.UNSPECIFIED : Slot.KEPT);
}

/** Returns the tokens that were read and written between two states. */
export function tokensBetween({ usage: before }: AgentProgress, { usage: after }: AgentProgress): number {
  return Number(after.inputTokens - before.inputTokens + after.outputTokens - before.outputTokens);
}

const CUMULATIVE = [
  "iterations",
  "inputTokens",
  "outputTokens",
  "cachedCreationTokens",
  "cachedInputTokens",
] as const;
const CURRENT = ["contextWindowLength", "contextWindowLimit"] as const;

function mergedUsage(present: Usage, reported: Usage): Usage {
  const usage = create(UsageSchema, reported);
  for (const name of CUMULATIVE) if (usage[name] < present[name]) usage[name] = present[name];
  return usage;
}

function isSame(one: Usage, other: Usage): boolean {
  return [...CUMULATIVE, ...CURRENT].every((name) => one[name] === other[name]);
}
