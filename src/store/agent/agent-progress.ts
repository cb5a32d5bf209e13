import { toJson } from "@bufbuild/protobuf";
import { ReportAgentRequest_UsageSchema as UsageSchema } from "#gen/runner/v1/agent_work_service_pb.js";
import { type TurnOptions, TurnOptionsSchema } from "#gen/service/v1/agent_pb.js";
import type { AgentProgress } from "../../domain/agent/agent-progress.ts";
import { fromBody, fromStoredJson } from "../json.ts";
import { prepared } from "../prepared.ts";
import type { Handle, Reader, WriteTransaction } from "../store.ts";

const updateProgress = prepared<
  { id: string; progress: string; changedAt: number },
  { parent_id: string | null }
>((db, { id, progress, changedAt }) =>
  db
    .updateTable("agent_execution")
    .set({ progress, changed_at: changedAt })
    .where("id", "=", id)
    .returning("parent_id"),
);

/** Stores the progress of an execution without an audit row, and wakes its listeners. */
export async function setProgress(
  tx: WriteTransaction,
  id: Handle<"agent_execution">,
  progress: AgentProgress,
): Promise<void> {
  const values = { id, progress: progressText(progress), changedAt: tx.now };
  const [row] = await updateProgress(tx.db, values);
  tx.touch(id);
  // The status of an execution includes its sub-agents.
  if (row?.parent_id) tx.touch(row.parent_id);
}

const raiseRevision = prepared<{ id: string }, { queue_revision: number }>((db, { id }) =>
  db
    .updateTable("agent_execution")
    .set((eb) => ({ queue_revision: eb("queue_revision", "+", 1) }))
    .where("id", "=", id)
    .returning("queue_revision"),
);

/**
 * Counts a change of the queue.
 * @returns the new revision of the queue
 */
export async function raiseQueueRevision(
  tx: WriteTransaction,
  id: Handle<"agent_execution">,
): Promise<number> {
  const [row] = await raiseRevision(tx.db, { id });
  if (!row) throw new Error(`there is no agent run ${id}`);
  return row.queue_revision;
}

const selectRevision = prepared<{ id: string }, { queue_revision: number }>((db, { id }) =>
  db.selectFrom("agent_execution").select("queue_revision").where("id", "=", id),
);

/**
 * Returns the revision of the queue of an execution that was found in its organization; 0 for one
 * that was removed.
 */
export async function findQueueRevision(db: Reader, id: Handle<"agent_execution">): Promise<number> {
  return (await selectRevision(db, { id }))[0]?.queue_revision ?? 0;
}

const updateSequence = prepared<{ id: string; lastSequence: number }, unknown>((db, { id, lastSequence }) =>
  db.updateTable("agent_execution").set({ last_sequence: lastSequence }).where("id", "=", id),
);

/** Stores the number of the newest output block. */
export async function setLastSequence(
  tx: WriteTransaction,
  id: Handle<"agent_execution">,
  lastSequence: number,
): Promise<void> {
  await updateSequence(tx.db, { id, lastSequence });
}

const selectFirstTurn = prepared<{ id: string }, { first_turn: string | null }>((db, { id }) =>
  db.selectFrom("agent_execution").select("first_turn").where("id", "=", id),
);

const clearFirstTurn = prepared<{ id: string }, unknown>((db, { id }) =>
  db.updateTable("agent_execution").set({ first_turn: null }).where("id", "=", id),
);

/**
 * Removes and returns the options of the first turn that the execution was started with; they are returned only once.
 */
export async function takeFirstTurn(
  tx: WriteTransaction,
  id: Handle<"agent_execution">,
): Promise<TurnOptions | undefined> {
  const text = (await selectFirstTurn(tx.db, { id }))[0]?.first_turn;
  if (!text) return undefined;
  await clearFirstTurn(tx.db, { id });
  return fromBody(TurnOptionsSchema, text);
}

/** Returns progress as its column stores it. */
export function progressText({ usage, ...progress }: AgentProgress): string {
  return JSON.stringify({ ...progress, usage: toJson(UsageSchema, usage) });
}

/** Parses a column that {@link progressText} wrote. */
export function progressOf(text: string): AgentProgress {
  const { usage, ...progress } = JSON.parse(text);
  return { ...progress, usage: fromStoredJson(UsageSchema, usage) };
}
