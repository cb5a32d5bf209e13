import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type AgentExecution,
  type AgentExecution_Status,
  AgentExecution_Status_LostTurnSchema,
  AgentExecution_Phase as Phase,
} from "#gen/service/v1/agent_pb.js";
import { phaseUnsuitable } from "../../error.ts";

/** A turn during which the lease was lost. Its inputs are those seen under the fence, after a place in the queue. */
export interface LostTurn {
  readonly fence: number;
  /** Place of the last input before the turn, in the order of delivery. */
  readonly after: number;
  /** Place of its last input. */
  readonly through: number;
  /** Id of the input that began it. */
  readonly inputId: string;
  /** Milliseconds since 1970 UTC. */
  readonly at: number;
  /** True if nothing is delivered until somebody decides. */
  readonly holdsQueue: boolean;
}

/**
 * Requires that there is a lost turn to continue without.
 * @throws DomainError PHASE_UNSUITABLE when no turn was lost
 */
export function requireLostTurn(execution: AgentExecution, lost: LostTurn | undefined): LostTurn {
  if (lost) return lost;
  throw unsuitable(
    execution,
    "the agent run has lost no turn, or somebody has asked for it again or gone on without it already",
  );
}

/**
 * Requires that there is a lost turn and that it can be retried.
 * @param isTaken whether the agent has inputs that it has not answered yet
 * @throws DomainError PHASE_UNSUITABLE when no turn was lost, or another turn is running
 */
export function requireRetriableTurn(
  execution: AgentExecution,
  lost: LostTurn | undefined,
  isTaken: boolean,
): LostTurn {
  const turn = requireLostTurn(execution, lost);
  if (!isTaken) return turn;
  throw unsuitable(
    execution,
    "another turn of the agent run goes on: ask for the lost one again once it is over",
  );
}

/** Puts a lost turn into the status of an execution before it is sent. */
export function applyLostTurn(status: AgentExecution_Status, lost: LostTurn | undefined): void {
  if (!lost) return;
  const { inputId, at, holdsQueue } = lost;
  status.lostTurn = create(AgentExecution_Status_LostTurnSchema, {
    inputId,
    lostAt: timestampFromMs(at),
    holdsQueue,
  });
}

function unsuitable({ status }: AgentExecution, message: string) {
  return phaseUnsuitable("agent execution", Phase[status?.phase ?? Phase.UNSPECIFIED] ?? "", message);
}
