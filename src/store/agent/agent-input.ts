import { clone, create, toJsonString } from "@bufbuild/protobuf";
import {
  type StreamInputsResponse as Delivery,
  StreamInputsResponseSchema as DeliverySchema,
} from "#gen/runner/v1/agent_work_service_pb.js";
import { type AgentInput, AgentInputSchema, AgentInputReceipt as Receipt } from "#gen/service/v1/agent_pb.js";
import type { QueuedInput } from "../../domain/agent/agent-queue.ts";
import { fromBody, toBody } from "../json.ts";
import { prepared } from "../prepared.ts";
import type { Handle, Reader, WriteTransaction } from "../store.ts";
import { extractImages, insertImages, removeImages } from "./agent-input-image.ts";
import type { AgentInputTable } from "./agent-schema.ts";

/** Options and settings of the turn that an input begins. */
export type InputTurn = Pick<Delivery, "turnOptions" | "extAgentSettings">;

/**
 * An input with the values that its body does not contain. Its execution must have been found in
 * its organization.
 */
export interface StoredInput {
  /** Without the data of images. */
  readonly input: AgentInput;
  /** Order of arrival, from 1. */
  readonly number: number;
  /** Order of delivery, among waiting inputs or among those no longer waiting. */
  readonly place: number;
  readonly steer: boolean;
  readonly turn: InputTurn;
}

/** Returns an input without the data of images. */
export function inputOfRow({ body, receipt }: Pick<AgentInputTable, "body" | "receipt">): AgentInput {
  const input = fromBody(AgentInputSchema, body);
  input.receipt = receipt;
  return input;
}

export function storedOfInput(row: AgentInputTable): StoredInput {
  const { number, place } = row;
  return {
    input: inputOfRow(row),
    number,
    place,
    steer: row.steer === 1,
    turn: fromBody(DeliverySchema, row.turn),
  };
}

const selectInput = prepared<{ executionId: string; inputId: string }, AgentInputTable>(
  (db, { executionId, inputId }) =>
    db
      .selectFrom("agent_input")
      .selectAll()
      .where("execution_id", "=", executionId)
      .where("input_id", "=", inputId),
);

export async function findInput(
  db: Reader,
  executionId: Handle<"agent_execution">,
  inputId: string,
): Promise<StoredInput | undefined> {
  const [row] = await selectInput(db, { executionId, inputId });
  return row && storedOfInput(row);
}

const selectQueue = prepared<{ executionId: string }, { id: string; place: number; steer: number }>(
  (db, { executionId }) =>
    db
      .selectFrom("agent_input")
      .select(["input_id as id", "place", "steer"])
      .where("execution_id", "=", executionId)
      .where("receipt", "=", Receipt.QUEUED)
      .orderBy("place"),
);

/** Returns the waiting inputs of an execution, in the order of delivery. */
export async function findQueuedInputs(
  db: Reader,
  executionId: Handle<"agent_execution">,
): Promise<QueuedInput[]> {
  const rows = await selectQueue(db, { executionId });
  return rows.map(({ id, place, steer }) => ({ id, place, steer: steer === 1 }));
}

const selectLastNumber = prepared<{ executionId: string }, { number: number | null }>((db, { executionId }) =>
  db
    .selectFrom("agent_input")
    .select(({ fn }) => fn.max("number").as("number"))
    .where("execution_id", "=", executionId),
);

const insertRow = prepared<AgentInputTable, unknown>((db, row) =>
  db.insertInto("agent_input").values({
    execution_id: row.execution_id,
    input_id: row.input_id,
    number: row.number,
    place: row.place,
    receipt: row.receipt,
    fence: row.fence,
    steer: row.steer,
    turn: row.turn,
    body: row.body,
  }),
);

/** Writes a new input, which waits in the queue; the data of its images goes to rows of its own. */
export async function insertInput(
  tx: WriteTransaction,
  executionId: Handle<"agent_execution">,
  input: AgentInput,
  { place, steer }: QueuedInput,
  turn: InputTurn,
): Promise<void> {
  const [last] = await selectLastNumber(tx.db, { executionId });
  const kept = clone(AgentInputSchema, input);
  kept.receipt = Receipt.UNSPECIFIED;
  const images = extractImages(kept);
  await insertRow(tx.db, {
    execution_id: executionId,
    input_id: input.id,
    number: (last?.number ?? 0) + 1,
    place,
    receipt: Receipt.QUEUED,
    fence: 0,
    steer: steer ? 1 : 0,
    turn: turnText(turn),
    body: toBody(AgentInputSchema, kept),
  });
  await insertImages(tx, { executionId, inputId: input.id }, images);
}

const setPlace = prepared<{ executionId: string; inputId: string; place: number; steer: number }, unknown>(
  (db, { executionId, inputId, place, steer }) =>
    db
      .updateTable("agent_input")
      .set({ place, steer })
      .where("execution_id", "=", executionId)
      .where("input_id", "=", inputId),
);

/** Moves waiting inputs to other positions. */
export async function setPlaces(
  tx: WriteTransaction,
  executionId: Handle<"agent_execution">,
  inputs: readonly QueuedInput[],
): Promise<void> {
  for (const { id, place, steer } of inputs) {
    await setPlace(tx.db, { executionId, inputId: id, place, steer: steer ? 1 : 0 });
  }
}

const setDeleted = prepared<{ executionId: string; inputId: string }, unknown>(
  (db, { executionId, inputId }) =>
    db
      .updateTable("agent_input")
      .set({ receipt: Receipt.DELETED })
      .where("execution_id", "=", executionId)
      .where("input_id", "=", inputId),
);

/** Marks a waiting input as deleted, and removes its content. */
export async function setInputDeleted(
  tx: WriteTransaction,
  executionId: Handle<"agent_execution">,
  inputId: string,
): Promise<void> {
  await setDeleted(tx.db, { executionId, inputId });
  await removeImages(tx, { executionId, inputId });
}

/** Returns the turn of an input as its column stores it. */
export function turnText({ turnOptions, extAgentSettings }: InputTurn): string {
  const turn = {
    ...(turnOptions && { turnOptions }),
    ...(extAgentSettings && { extAgentSettings }),
  };
  return toJsonString(DeliverySchema, create(DeliverySchema, turn));
}
