import { type AgentExecution, AgentMode, AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import type { Tone } from "../../parts/State.tsx";

/** Returns the tone and word for the state of a run. */
export function runState({ status }: AgentExecution): readonly [Tone, string] {
  if (!status) return ["waiting", "Unknown"];
  if (status.phase === Phase.STOPPED) {
    return status.failureMessage === "" ? ["done", "Ended"] : ["failed", "Failed"];
  }
  if (status.pendingApprovalIds.length > 0) return ["asks", "Waiting for approval"];
  if (status.phase === Phase.WAITING_FOR_INPUT) return ["asks", "Waiting for input"];
  if (status.phase === Phase.RUNNING) return ["running", "Working"];
  return ["waiting", "Waiting for a runner"];
}

/** Returns the title of a run: its name, its subject, or the beginning of its id. */
export const runTitle = ({ id, metadata }: AgentExecution): string =>
  metadata?.name || metadata?.description || `Run ${id.slice(-8)}`;

/** The phases of unfinished runs. */
export const GOING_ON = [Phase.PENDING, Phase.RUNNING, Phase.WAITING_FOR_INPUT];

/** The modes in which an agent works, with a name and an explanation. */
export const MODES: readonly (readonly [mode: AgentMode, label: string, explanation: string])[] = [
  [AgentMode.EXECUTION, "Work", "Performs tasks and makes changes."],
  [AgentMode.PLANNING, "Plan", "Analyses, but changes nothing."],
  [AgentMode.SPEC, "Specify", "Plans first, then implements with you."],
  [AgentMode.RALPH, "On its own", "Plans and implements without asking in between."],
  [AgentMode.GOAL, "Goal", "Treats the message as a goal."],
];
