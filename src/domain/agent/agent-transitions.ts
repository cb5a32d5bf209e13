import { AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import { phaseUnsuitable } from "../error.ts";
import type { Transition } from "../workflow/execution/workflow-transitions.ts";

export type AgentEvent = "begin" | "wait" | "wake" | "lose" | "end" | "stop" | "fail";

/**
 * The legal transitions of an agent execution; a transition that is not in the table is rejected.
 * `begin` is a lease on its work, `lose` the loss of that lease in the middle of a turn, `end` the
 * end of the agent's program. An execution that waits for input keeps waiting when its runner is
 * lost.
 */
export const AGENT_TRANSITIONS: readonly Transition<Phase, AgentEvent>[] = [
  [Phase.PENDING, "begin", Phase.RUNNING],
  [Phase.PENDING, "stop", Phase.STOPPED],
  [Phase.PENDING, "fail", Phase.STOPPED],
  [Phase.RUNNING, "wait", Phase.WAITING_FOR_INPUT],
  [Phase.RUNNING, "lose", Phase.PENDING],
  [Phase.RUNNING, "end", Phase.STOPPED],
  [Phase.RUNNING, "stop", Phase.STOPPED],
  [Phase.RUNNING, "fail", Phase.STOPPED],
  [Phase.WAITING_FOR_INPUT, "wake", Phase.RUNNING],
  [Phase.WAITING_FOR_INPUT, "end", Phase.STOPPED],
  [Phase.WAITING_FOR_INPUT, "stop", Phase.STOPPED],
  [Phase.WAITING_FOR_INPUT, "fail", Phase.STOPPED],
];

/**
 * Returns the phase after an event.
 * @throws DomainError PHASE_UNSUITABLE for a transition that is not in the table
 */
export function transitionAgentPhase(from: Phase, event: AgentEvent): Phase {
  const to = AGENT_TRANSITIONS.find(([phase, on]) => phase === from && on === event)?.[2];
  if (to !== undefined) return to;
  const name = Phase[from] ?? "UNSPECIFIED";
  throw phaseUnsuitable(
    "agent execution",
    name,
    `the event "${event}" is not allowed while the agent run is ${name}`,
  );
}

/** Returns whether a phase is final: no event leads out of it. */
export function isFinalAgentPhase(phase: Phase): boolean {
  return !AGENT_TRANSITIONS.some(([from]) => from === phase);
}
