import {
  AgentForkAbility as Ability,
  type AgentExecution,
  AgentExecution_Phase as Phase,
} from "#gen/service/v1/agent_pb.js";
import { phaseUnsuitable, valueUnusable } from "../../error.ts";

/** The end of a turn at which an agent forks a conversation. */
export interface ForkPoint {
  /** Id of the first execution of the conversation. */
  readonly conversationId: string;
  /** Id of the execution of the turn; empty before the first turn of the conversation. */
  readonly agentExecutionId: string;
  /** Id of an input of the turn; empty before the first turn. */
  readonly inputId: string;
}

/** The requested place at which to fork a conversation. */
export interface ForkPlace {
  /** Number of the last block of the execution that is forked. */
  readonly lastSequence: number;
  /** Number of the block that was asked for; undefined for the last. */
  readonly asked: number | undefined;
}

/**
 * Requires that the agent of an execution can fork its conversation at a place.
 * @returns the number of the block
 * @throws DomainError VALUE_UNUSABLE for a number that is not reached yet; PHASE_UNSUITABLE when the agent cannot fork
 */
export function requireForkable(
  execution: AgentExecution,
  ability: Ability,
  { lastSequence, asked = lastSequence }: ForkPlace,
): number {
  if (asked > lastSequence)
    throw valueUnusable("sequence", "sequence is higher than the last number of the agent run");
  if (ability === Ability.UNSPECIFIED)
    throw unsuitable(
      execution,
      "the agent of the run has not reported that it can fork a conversation: an agent does once its program runs, and one of plain text never does",
    );
  if (ability === Ability.NONE)
    throw unsuitable(execution, "the agent of the run cannot fork a conversation");
  if (ability === Ability.LATEST && asked !== lastSequence)
    throw unsuitable(
      execution,
      "the agent of the run can fork a conversation at its end only: leave out the sequence",
    );
  return asked;
}

/** Requires that no turn is running. @throws DomainError PHASE_UNSUITABLE */
export function requireBetweenTurns(execution: AgentExecution, isInTurn: boolean): void {
  if (!isInTurn) return;
  throw unsuitable(
    execution,
    "a turn of the agent run goes on: fork it once the turn is over, or from the end of an earlier one",
  );
}

/**
 * Requires that the agent's session was not continued by another execution. If it was, only an agent that can fork at
 * any turn can fork it at the earlier place.
 * @param continuationId id of that execution; undefined for none
 * @throws DomainError PHASE_UNSUITABLE
 */
export function requireOwnEnd(
  execution: AgentExecution,
  ability: Ability,
  continuationId: string | undefined,
): void {
  if (ability === Ability.ANY_TURN || continuationId === undefined) return;
  throw unsuitable(execution, `the agent run was resumed as ${continuationId}: fork that one`);
}

/** Returns the error for a block that is not the last of its turn. */
export function inMiddleOfTurn(execution: AgentExecution, sequence: number) {
  return unsuitable(
    execution,
    `the block ${sequence} is in the middle of a turn: name the last block of a turn`,
  );
}

/** Returns the error for a block that was removed, or that the caller may not read. */
export function blockUnreadable() {
  return valueUnusable(
    "sequence",
    "sequence must be that of an existing block of the conversation that the caller may read",
  );
}

function unsuitable({ status }: AgentExecution, message: string) {
  return phaseUnsuitable("agent execution", Phase[status?.phase ?? Phase.UNSPECIFIED] ?? "", message);
}
