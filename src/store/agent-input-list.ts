import type { Kysely } from "kysely";
import { type AgentInput, AgentInputReceipt as Receipt } from "#gen/service/v1/agent_pb.js";
import { storedOfInput } from "./agent-input.ts";
import type { Schema } from "./schema.ts";

/** Which inputs of a run to list. */
export interface InputQuery {
  /** Whether those that wait no longer are listed too, all in the order of their arrival. */
  readonly includePast: boolean;
  /** Key of the last one on the page before. */
  readonly after: number | undefined;
  readonly limit: number;
}

export interface ListedInput {
  /** Without the data of images. */
  readonly input: AgentInput;
  /** Its place in the order of the list. */
  readonly key: number;
}

/** Inputs of a run that was found in its organization: the queue in the order of delivery, or all. */
export async function listInputs(
  db: Kysely<Schema>,
  executionId: string,
  { includePast, after, limit }: InputQuery,
): Promise<ListedInput[]> {
  const key = includePast ? "number" : "place";
  let query = db.selectFrom("agent_input").selectAll().where("execution_id", "=", executionId);
  if (!includePast) query = query.where("receipt", "=", Receipt.QUEUED);
  if (after !== undefined) query = query.where(key, ">", after);
  const rows = await query.orderBy(key).limit(limit).execute();
  return rows.map((row) => ({ input: storedOfInput(row).input, key: row[key] }));
}
