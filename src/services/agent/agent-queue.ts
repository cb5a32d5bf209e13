import type { AgentInput } from "#gen/service/v1/agent_pb.js";
import { type AgentQueue, newlyPlacedInputs, withInput } from "../../domain/agent/agent-queue.ts";
import type { StoredAgentExecution } from "../../store/agent/agent-execution.ts";
import { findQueuedInputs, type InputTurn, insertInput, setPlaces } from "../../store/agent/agent-input.ts";
import { raiseQueueRevision } from "../../store/agent/agent-progress.ts";
import type { Handle, WriteTransaction } from "../../store/store.ts";
import { wakeAgentExecution } from "./agent-slot.ts";

/** How an input is delivered. */
export interface InputDelivery {
  /** True to deliver it immediately, into the current turn. Default false. */
  readonly steer?: boolean;
  /** Options and settings of the turn that the input begins. Default none. */
  readonly turn?: InputTurn;
}

/** Returns the queue of an agent execution, which must have been read in this transaction. */
export async function readQueue(
  tx: WriteTransaction,
  { execution, queueRevision }: Pick<StoredAgentExecution, "execution" | "queueRevision">,
): Promise<AgentQueue> {
  return { revision: queueRevision, inputs: await findQueuedInputs(tx.db, execution.id) };
}

/** Adds an input to the queue of an agent execution that has not stopped, and wakes the stream that delivers it. */
export async function queueInput(
  tx: WriteTransaction,
  stored: Pick<StoredAgentExecution, "execution" | "queueRevision" | "progress">,
  input: AgentInput,
  { steer = false, turn = {} }: InputDelivery = {},
): Promise<void> {
  const before = await readQueue(tx, stored);
  const after = withInput(before, input.id, steer);
  const placed = newlyPlacedInputs(before, after);
  for (const each of placed) {
    if (each.id === input.id) await insertInput(tx, stored.execution.id, input, each, turn);
  }
  const others = placed.filter(({ id }) => id !== input.id);
  await writeOrder(tx, stored.execution.id, others);
  await wakeAgentExecution(tx, stored);
}

/** Writes the new order of a queue, if it has changed. */
export async function reorderQueue(
  tx: WriteTransaction,
  executionId: Handle<"agent_execution">,
  before: AgentQueue,
  after: AgentQueue,
): Promise<void> {
  if (after !== before) await writeOrder(tx, executionId, newlyPlacedInputs(before, after));
}

async function writeOrder(
  tx: WriteTransaction,
  executionId: Handle<"agent_execution">,
  placed: Parameters<typeof setPlaces>[2],
): Promise<void> {
  await setPlaces(tx, executionId, placed);
  await raiseQueueRevision(tx, executionId);
  tx.touch(executionId);
}
