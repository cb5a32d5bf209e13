import type { Kysely } from "kysely";
import { type AgentInput, AgentInputReceipt as Receipt } from "#gen/service/v1/agent_pb.js";
import type { ListedRow } from "../../domain/page.ts";
import { listedRow, textColumns } from "../listed-row.ts";
import { prepared } from "../prepared.ts";
import type { Schema } from "../schema.ts";
import { checkDeadline } from "../sqlite/expressions.ts";
import { inputOfRow } from "./agent-input.ts";

/** Which inputs of a run to list. */
export interface InputQuery {
  /** Whether those that wait no longer are listed too, all in the order of their arrival. */
  readonly includePast: boolean;
  /** Key of the last one on the page before. */
  readonly after: number | undefined;
  readonly limit: number;
}

/** Inputs, without the data of images, of a run that was found in its organization: the queue in the order of delivery, or all. */
export async function findInputPage(
  db: Kysely<Schema>,
  executionId: string,
  { includePast, after, limit }: InputQuery,
): Promise<ListedRow<AgentInput>[]> {
  const key = includePast ? "number" : "place";
  let query = db
    .selectFrom("agent_input")
    .select(["input_id", "number", "place", "receipt", ...textColumns("agent_input.body")])
    .where(checkDeadline())
    .where("execution_id", "=", executionId);
  if (!includePast) query = query.where("receipt", "=", Receipt.QUEUED);
  if (after !== undefined) query = query.where(key, ">", after);
  const rows = await query.orderBy(key).limit(limit).execute();
  // Inputs of one run differ by their key; the id is there for the form of the token.
  return rows.map((row) =>
    listedRow(
      row,
      { key: row[key], id: executionId },
      async () => (await findInputBody(db, { executionId, inputId: row.input_id }))[0]?.body,
      inputOfRow,
    ),
  );
}

const findInputBody = prepared<{ executionId: string; inputId: string }, { body: string }>(
  (db, { executionId, inputId }) =>
    db
      .selectFrom("agent_input")
      .select("body")
      .where("execution_id", "=", executionId)
      .where("input_id", "=", inputId),
);
