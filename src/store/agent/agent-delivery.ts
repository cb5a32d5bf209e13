import { AgentInputSchema, AgentInputReceipt as Receipt } from "#gen/service/v1/agent_pb.js";
import { fromBody } from "../json.ts";
import { prepared } from "../prepared.ts";
import type { Handle, Reader, WriteTransaction } from "../store.ts";
import { type InputTurn, type StoredInput, storedOfInput, turnText } from "./agent-input.ts";
import type { AgentInputTable } from "./agent-schema.ts";

const selectLastPlaces = prepared<{ executionId: string }, { place: number | null }>(
  (db, { executionId }) => {
    const lastWith = (receipt: Receipt) =>
      db
        .selectFrom("agent_input")
        .select(({ fn }) => fn.max("place").as("place"))
        .where("execution_id", "=", executionId)
        .where("receipt", "=", receipt);
    return lastWith(Receipt.DELIVERED).unionAll(lastWith(Receipt.SEEN));
  },
);

const setDelivered = prepared<
  { executionId: string; inputId: string; place: number; fence: number; turn: string },
  unknown
>((db, { executionId, inputId, place, fence, turn }) =>
  db
    .updateTable("agent_input")
    .set({ receipt: Receipt.DELIVERED, place, fence, turn })
    .where("execution_id", "=", executionId)
    .where("input_id", "=", inputId),
);

/** Returns the position, in the order of delivery, after all inputs that were delivered so far. */
export async function nextDeliveryPlace(db: Reader, executionId: Handle<"agent_execution">): Promise<number> {
  const places = await selectLastPlaces(db, { executionId });
  return Math.max(0, ...places.map((row) => row.place ?? 0)) + 1;
}

/** Records that an input is delivered to the runner of a lease, as the newest delivery. */
export async function deliverInput(
  tx: WriteTransaction,
  executionId: Handle<"agent_execution">,
  inputId: string,
  { fence, turn }: { readonly fence: number; readonly turn: InputTurn },
): Promise<void> {
  const place = await nextDeliveryPlace(tx.db, executionId);
  await setDelivered(tx.db, { executionId, inputId, place, fence, turn: turnText(turn) });
}

const selectUnseen = prepared<{ executionId: string; after: number }, AgentInputTable>(
  (db, { executionId, after }) =>
    db
      .selectFrom("agent_input")
      .selectAll()
      .where("execution_id", "=", executionId)
      .where("receipt", "=", Receipt.DELIVERED)
      .where("place", ">", after)
      .orderBy("place")
      .limit(1),
);

/** Returns the first input after a position that was delivered and not acknowledged, in the order of delivery. */
export async function findUnseenInput(
  db: Reader,
  executionId: Handle<"agent_execution">,
  after: number,
): Promise<StoredInput | undefined> {
  const [row] = await selectUnseen(db, { executionId, after });
  return row && storedOfInput(row);
}

const selectAnyUnseen = prepared<{ executionId: string }, { input_id: string }>((db, { executionId }) =>
  db
    .selectFrom("agent_input")
    .select("input_id")
    .where("execution_id", "=", executionId)
    .where("receipt", "=", Receipt.DELIVERED)
    .limit(1),
);

export async function hasUnseenInput(db: Reader, executionId: Handle<"agent_execution">): Promise<boolean> {
  return (await selectAnyUnseen(db, { executionId })).length > 0;
}

const selectWakes = prepared<{ executionId: string }, { body: string }>((db, { executionId }) =>
  db
    .selectFrom("agent_input")
    .select("body")
    .where("execution_id", "=", executionId)
    .where("receipt", "in", [Receipt.QUEUED, Receipt.DELIVERED])
    // Filters before bodies are parsed: messages of people may be long.
    .where("body", "like", '%"wakeEvent":%'),
);

/**
 * Returns the ids of an execution's interests that have fired and whose wake event the agent has
 * not received.
 */
export async function findUnseenWakeInterestIds(
  db: Reader,
  executionId: Handle<"agent_execution">,
): Promise<string[]> {
  const rows = await selectWakes(db, { executionId });
  return rows.flatMap(({ body }) => {
    const { input } = fromBody(AgentInputSchema, body);
    return input.case === "wakeEvent" ? [input.value.interestId] : [];
  });
}

const setSeen = prepared<{ executionId: string; inputId: string; fence: number }, unknown>(
  (db, { executionId, inputId, fence }) =>
    db
      .updateTable("agent_input")
      .set({ receipt: Receipt.SEEN, fence })
      .where("execution_id", "=", executionId)
      .where("input_id", "=", inputId),
);

/**
 * Records that the agent received an input. The data that was delivered with it is kept until its turn is over: a lost
 * turn can be requested again.
 */
export async function setInputSeen(
  tx: WriteTransaction,
  executionId: Handle<"agent_execution">,
  inputId: string,
  fence: number,
): Promise<void> {
  await setSeen(tx.db, { executionId, inputId, fence });
}

const selectLastSeenOf = prepared<{ executionId: string }, { input_id: string }>((db, { executionId }) =>
  db
    .selectFrom("agent_input")
    .select("input_id")
    .where("execution_id", "=", executionId)
    .where("receipt", "=", Receipt.SEEN)
    // Outcomes of approvals belong to no turn.
    .where("fence", ">", 0)
    .orderBy("place", "desc")
    .limit(1),
);

/** Returns the id of the last input that the agent received; undefined before the first. */
export async function findLastSeenOf(
  db: Reader,
  executionId: Handle<"agent_execution">,
): Promise<string | undefined> {
  const [row] = await selectLastSeenOf(db, { executionId });
  return row?.input_id;
}

const selectLastSeen = prepared<{ executionId: string; fence: number }, { input_id: string; place: number }>(
  (db, { executionId, fence }) =>
    db
      .selectFrom("agent_input")
      .select(["input_id", "place"])
      .where("execution_id", "=", executionId)
      .where("receipt", "=", Receipt.SEEN)
      .where("fence", "=", fence)
      .orderBy("place", "desc")
      .limit(1),
);

/**
 * Returns the id of the last input that the agent received under a lease; undefined before the
 * first.
 */
export async function findLastSeenId(
  db: Reader,
  executionId: Handle<"agent_execution">,
  fence: number,
): Promise<string | undefined> {
  return (await findLastSeen(db, executionId, fence))?.id;
}

/** Returns the last input that the agent received under a lease, and its position in the order of delivery. */
export async function findLastSeen(
  db: Reader,
  executionId: Handle<"agent_execution">,
  fence: number,
): Promise<{ readonly id: string; readonly place: number } | undefined> {
  const [row] = await selectLastSeen(db, { executionId, fence });
  return row && { id: row.input_id, place: row.place };
}
