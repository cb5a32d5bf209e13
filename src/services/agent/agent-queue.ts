import type { AgentInput } from "#gen/service/v1/agent_pb.js";
import { type AgentQueue, newlyPlaced, withInput } from "../../domain/agent/agent-queue.ts";
import { queueFull } from "../../domain/error.ts";
import type { StoredAgentExecution } from "../../store/agent/agent-execution.ts";
import { findQueuedInputs, type InputTurn, insertInput, setPlaces } from "../../store/agent/agent-input.ts";
import { raiseQueueRevision } from "../../store/agent/agent-progress.ts";
import type { WriteTransaction } from "../../store/store.ts";

/** Inputs that wait at a time (contract, SendToAgentExecution); what the service tells comes on top of them. */
const MOST_QUEUED = 50;

/** How an input is delivered. */
export interface InputDelivery {
  /** At once, into the turn that is going on. Default false. */
  readonly steer?: boolean;
  /** What goes with the turn that it begins. Default nothing. */
  readonly turn?: InputTurn;
}

/** The queue of a run, which must have been found in this transaction. */
export async function queueOf(
  tx: WriteTransaction,
  { execution, queueRevision }: Pick<StoredAgentExecution, "execution" | "queueRevision">,
): Promise<AgentQueue> {
  return { revision: queueRevision, inputs: await findQueuedInputs(tx.db, execution.id) };
}

/** @throws DomainError QUEUE_FULL when as many inputs wait as may */
export async function requireQueueSpace(
  tx: WriteTransaction,
  run: Pick<StoredAgentExecution, "execution">,
): Promise<void> {
  if ((await findQueuedInputs(tx.db, run.execution.id)).length >= MOST_QUEUED) throw queueFull(MOST_QUEUED);
}

/** Puts an input into the queue of a run that has not stopped, and wakes the runner that waits for it. */
export async function queueInput(
  tx: WriteTransaction,
  run: Pick<StoredAgentExecution, "execution" | "queueRevision">,
  input: AgentInput,
  { steer = false, turn = {} }: InputDelivery = {},
): Promise<void> {
  const before = await queueOf(tx, run);
  const after = withInput(before, input.id, steer);
  const placed = newlyPlaced(before, after);
  for (const each of placed) {
    if (each.id === input.id) await insertInput(tx, run.execution.id, input, each, turn);
  }
  const others = placed.filter(({ id }) => id !== input.id);
  await keepOrder(tx, run.execution.id, others);
}

/** Writes another order of what is queued; nothing for none. */
export async function reorderQueue(
  tx: WriteTransaction,
  executionId: string,
  before: AgentQueue,
  after: AgentQueue,
): Promise<void> {
  if (after !== before) await keepOrder(tx, executionId, newlyPlaced(before, after));
}

async function keepOrder(
  tx: WriteTransaction,
  executionId: string,
  placed: Parameters<typeof setPlaces>[2],
): Promise<void> {
  await setPlaces(tx, executionId, placed);
  await raiseQueueRevision(tx, executionId);
  tx.touch(executionId);
}
