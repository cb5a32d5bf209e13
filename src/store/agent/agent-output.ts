import { type AgentOutputBlock, AgentOutputBlockSchema } from "#gen/service/v1/agent_pb.js";
import { foldKey } from "../../domain/agent/agent-output-fold.ts";
import { fromBody, toBody } from "../json.ts";
import { prepared } from "../prepared.ts";
import type { Handle, Reader, WriteTransaction } from "../store.ts";
import type { OutputPart } from "./agent-conversation.ts";
import { setLastSequence } from "./agent-progress.ts";
import type { AgentOutputTable } from "./agent-schema.ts";

const insertRow = prepared<AgentOutputTable, unknown>((db, row) =>
  db.insertInto("agent_output").values({
    execution_id: row.execution_id,
    sequence: row.sequence,
    fold_key: row.fold_key,
    body: row.body,
  }),
);

/**
 * Appends blocks to an execution's output without an audit row. Listeners of the execution are
 * woken.
 * @param blocks numbered on from the execution's last sequence, without a gap
 */
export async function appendOutput(
  tx: WriteTransaction,
  executionId: Handle<"agent_execution">,
  blocks: readonly AgentOutputBlock[],
): Promise<void> {
  const last = blocks.at(-1);
  if (!last) return;
  for (const block of blocks) {
    const sequence = Number(block.sequence);
    const body = toBody(AgentOutputBlockSchema, block);
    await insertRow(tx.db, { execution_id: executionId, sequence, fold_key: foldKey(block), body });
  }
  await setLastSequence(tx, executionId, Number(last.sequence));
  tx.touch(executionId);
}

const selectAfter = prepared<
  { executionId: string; after: number; through: number; limit: number },
  { body: string }
>((db, { executionId, after, through, limit }) =>
  db
    .selectFrom("agent_output")
    .select("body")
    .where("execution_id", "=", executionId)
    .where("sequence", ">", after)
    .where("sequence", "<=", through)
    .orderBy("sequence")
    .limit(limit),
);

/**
 * Returns up to `limit` blocks of a part after a number, of an execution that was found in its organization.
 */
export async function findOutput(
  db: Reader,
  { executionId, through }: OutputPart,
  after: number,
  limit: number,
): Promise<AgentOutputBlock[]> {
  const rows = await selectAfter(db, { executionId, after, through, limit });
  return rows.map(({ body }) => fromBody(AgentOutputBlockSchema, body));
}

const selectBefore = prepared<{ executionId: string; before: number; limit: number }, { body: string }>(
  (db, { executionId, before, limit }) =>
    db
      .selectFrom("agent_output")
      .select("body")
      .where("execution_id", "=", executionId)
      .where("sequence", "<", before)
      .orderBy("sequence", "desc")
      .limit(limit),
);

/** Returns up to `limit` blocks of an execution before a number, the newest first. */
export async function findOutputBefore(
  db: Reader,
  executionId: Handle<"agent_execution">,
  before: number,
  limit: number,
): Promise<AgentOutputBlock[]> {
  const rows = await selectBefore(db, { executionId, before, limit });
  return rows.map(({ body }) => fromBody(AgentOutputBlockSchema, body));
}
