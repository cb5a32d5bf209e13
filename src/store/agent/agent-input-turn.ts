import { type AgentInput, AgentInputReceipt as Receipt } from "#gen/service/v1/agent_pb.js";
import { prepared } from "../prepared.ts";
import type { Handle, Reader, WriteTransaction } from "../store.ts";
import { nextDeliveryPlace } from "./agent-delivery.ts";
import { inputOfRow, turnText } from "./agent-input.ts";

/** Inputs that were seen in one turn, by their positions in the order of delivery. */
export interface TurnPlaces {
  /** The last position before the turn. */
  readonly after: number;
  /** The last position of the turn. */
  readonly through: number;
}

type Range = TurnPlaces & { executionId: string };

const clearTurns = prepared<Range & { turn: string }, unknown>((db, { executionId, after, through, turn }) =>
  db
    .updateTable("agent_input")
    .set({ turn })
    .where("execution_id", "=", executionId)
    .where("receipt", "=", Receipt.SEEN)
    .where("place", ">", after)
    .where("place", "<=", through)
    .where("turn", "<>", turn),
);

const deleteImages = prepared<Range, unknown>((db, { executionId, after, through }) =>
  db
    .deleteFrom("agent_input_image")
    .where("execution_id", "=", executionId)
    .where(
      "input_id",
      "in",
      db
        .selectFrom("agent_input")
        .select("input_id")
        .where("execution_id", "=", executionId)
        .where("receipt", "=", Receipt.SEEN)
        .where("place", ">", after)
        .where("place", "<=", through),
    ),
);

/** Removes data delivered with the inputs of turns that are not requested again: options, settings and images. */
export async function removeTurnData(
  tx: WriteTransaction,
  executionId: Handle<"agent_execution">,
  { after, through }: TurnPlaces,
): Promise<void> {
  const range = { executionId, after, through };
  await clearTurns(tx.db, { ...range, turn: turnText({}) });
  await deleteImages(tx.db, range);
}

const selectSeen = prepared<{ executionId: string; fence: number; after: number }, { input_id: string }>(
  (db, { executionId, fence, after }) =>
    db
      .selectFrom("agent_input")
      .select("input_id")
      .where("execution_id", "=", executionId)
      .where("receipt", "=", Receipt.SEEN)
      .where("fence", "=", fence)
      .where("place", ">", after)
      .orderBy("place"),
);

/** Returns the ids of the inputs that the agent received under a lease after a position, in the order of delivery. */
export async function findTurnInputIds(
  db: Reader,
  executionId: Handle<"agent_execution">,
  { fence, after }: { readonly fence: number; readonly after: number },
): Promise<string[]> {
  const rows = await selectSeen(db, { executionId, fence, after });
  return rows.map((row) => row.input_id);
}

const selectInputs = prepared<Range & { limit: number }, { body: string; receipt: number }>(
  (db, { executionId, after, through, limit }) =>
    db
      .selectFrom("agent_input")
      .select(["body", "receipt"])
      .where("execution_id", "=", executionId)
      .where("receipt", "=", Receipt.SEEN)
      // Outcomes of approvals belong to no turn.
      .where("fence", ">", 0)
      .where("place", ">", after)
      .where("place", "<=", through)
      .orderBy("place")
      .limit(limit),
);

/** Returns up to `limit` inputs that the agent received in turns, in the order of delivery, without the data of images. */
export async function findTurnInputs(
  db: Reader,
  executionId: Handle<"agent_execution">,
  { after, through }: TurnPlaces,
  limit: number,
): Promise<AgentInput[]> {
  return (await selectInputs(db, { executionId, after, through, limit })).map(inputOfRow);
}

const selectUnseen = prepared<{ executionId: string }, { input_id: string }>((db, { executionId }) =>
  db
    .selectFrom("agent_input")
    .select("input_id")
    .where("execution_id", "=", executionId)
    .where("receipt", "=", Receipt.DELIVERED)
    .orderBy("place"),
);

const setDeliveredAgain = prepared<{ executionId: string; inputId: string; place: number }, unknown>(
  (db, { executionId, inputId, place }) =>
    db
      .updateTable("agent_input")
      .set({ receipt: Receipt.DELIVERED, place })
      .where("execution_id", "=", executionId)
      .where("input_id", "=", inputId),
);

/** Makes inputs that the agent has received be delivered again, before those that it has not received yet. */
export async function deliverTurnAgain(
  tx: WriteTransaction,
  executionId: Handle<"agent_execution">,
  inputIds: readonly string[],
): Promise<void> {
  const unseen = await selectUnseen(tx.db, { executionId });
  let place = await nextDeliveryPlace(tx.db, executionId);
  for (const inputId of [...inputIds, ...unseen.map((row) => row.input_id)])
    await setDeliveredAgain(tx.db, { executionId, inputId, place: place++ });
}
