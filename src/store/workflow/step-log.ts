import { prepared } from "../prepared.ts";
import type { Handle, Reader, WriteTransaction } from "../store.ts";

/** Bytes that are stored from the beginning of a step's output, and from its end: 1 MiB together. */
const MAX_BYTES_PER_END = 512 * 1024;

/** The key of a log: one step in one attempt of an action. */
export interface LogOwner {
  readonly actionId: Handle<"workflow_action">;
  /** From 1. */
  readonly attempt: number;
  /** From 0. */
  readonly stepIndex: number;
}

/** A piece of a log, by its offset in the whole output of the step, in bytes. */
export interface LogChunk {
  readonly offset: number;
  readonly data: Uint8Array;
}

const selectLastPiece = prepared<LogOwner, { start: number; length: number }>(
  (db, { actionId, attempt, stepIndex }) =>
    db
      .selectFrom("step_log")
      .select(({ fn }) => ["start", fn<number>("length", ["data"]).as("length")])
      .where("action_id", "=", actionId)
      .where("attempt", "=", attempt)
      .where("step_index", "=", stepIndex)
      .orderBy("start", "desc")
      .limit(1),
);

const insertPiece = prepared<LogOwner & LogChunk, unknown>(
  (db, { actionId, attempt, stepIndex, offset, data }) =>
    db
      .insertInto("step_log")
      .values({ action_id: actionId, attempt, step_index: stepIndex, start: offset, data }),
);

/**
 * Appends a piece to a log, and wakes the listeners of the action. Bytes that are already stored
 * are not written again. Above 1 MiB the middle is removed: the beginning stays, and the end moves
 * on.
 * @returns false for a piece that begins after the end of the log
 */
export async function appendLog(tx: WriteTransaction, owner: LogOwner, piece: LogChunk): Promise<boolean> {
  const [last] = await selectLastPiece(tx.db, owner);
  const end = last ? last.start + last.length : 0;
  if (piece.offset > end) return false;
  const data = piece.data.subarray(end - piece.offset);
  if (data.length === 0) return true;
  // Cut where the beginning ends, so that no piece belongs to both ends.
  const toBeginning = Math.max(0, Math.min(data.length, MAX_BYTES_PER_END - end));
  for (const part of [
    { offset: end, data: data.subarray(0, toBeginning) },
    { offset: end + toBeginning, data: data.subarray(toBeginning) },
  ]) {
    if (part.data.length > 0) await insertPiece(tx.db, { ...owner, ...part });
  }
  await cutMiddle(tx, owner, end + data.length - MAX_BYTES_PER_END);
  tx.touch(owner.actionId);
  return true;
}

const selectPieceAt = prepared<LogOwner & { from: number; at: number }, { start: number; data: Uint8Array }>(
  (db, { actionId, attempt, stepIndex, from, at }) =>
    db
      .selectFrom("step_log")
      .select(["start", "data"])
      .where("action_id", "=", actionId)
      .where("attempt", "=", attempt)
      .where("step_index", "=", stepIndex)
      .where("start", ">=", from)
      .where("start", "<", at)
      .orderBy("start", "desc")
      .limit(1),
);

const deletePieces = prepared<LogOwner & { from: number; before: number }, unknown>(
  (db, { actionId, attempt, stepIndex, from, before }) =>
    db
      .deleteFrom("step_log")
      .where("action_id", "=", actionId)
      .where("attempt", "=", attempt)
      .where("step_index", "=", stepIndex)
      .where("start", ">=", from)
      .where("start", "<", before),
);

/** Removes the part between the beginning and `cut`, where the end of the log now starts. */
async function cutMiddle(tx: WriteTransaction, owner: LogOwner, cut: number): Promise<void> {
  if (cut <= MAX_BYTES_PER_END) return;
  const from = MAX_BYTES_PER_END;
  const [over] = await selectPieceAt(tx.db, { ...owner, from, at: cut });
  if (!over) return;
  await deletePieces(tx.db, { ...owner, from, before: cut });
  const kept = over.data.subarray(cut - over.start);
  if (kept.length > 0) await insertPiece(tx.db, { ...owner, offset: cut, data: kept });
}

/**
 * A position in the logs of an attempt: the text before it in this step, and all steps before, are
 * known.
 */
export interface LogPosition {
  readonly stepIndex: number;
  readonly offset: number;
}

export interface StoredLogChunk extends LogChunk {
  readonly stepIndex: number;
}

const selectOfStep = prepared<LogOwner & { offset: number; limit: number }, StoredLogChunk>(
  (db, { actionId, attempt, stepIndex, offset, limit }) => {
    const ofStep = db
      .selectFrom("step_log")
      .where("action_id", "=", actionId)
      .where("attempt", "=", attempt)
      .where("step_index", "=", stepIndex);
    return ofStep
      .select(["step_index as stepIndex", "start as offset", "data"])
      .where((eb) =>
        // Starts with the piece that contains the position.
        eb(
          "start",
          ">=",
          eb.fn.coalesce(
            ofStep.select(eb.fn.max("start").as("start")).where("start", "<=", offset),
            eb.lit(0),
          ),
        ),
      )
      .orderBy("start")
      .limit(limit);
  },
);

const selectOfLaterSteps = prepared<LogOwner & { lastStep: number; limit: number }, StoredLogChunk>(
  (db, { actionId, attempt, stepIndex, lastStep, limit }) =>
    db
      .selectFrom("step_log")
      .select(["step_index as stepIndex", "start as offset", "data"])
      .where("action_id", "=", actionId)
      .where("attempt", "=", attempt)
      .where("step_index", ">", stepIndex)
      .where("step_index", "<=", lastStep)
      .orderBy("step_index")
      .orderBy("start")
      .limit(limit),
);

/**
 * Returns up to `limit` pieces of an attempt's logs from a position on, in the order of the steps;
 * none when there are no more yet.
 * @param lastStep no step after this one
 */
export async function findLogChunks(
  db: Reader,
  { actionId, attempt }: Omit<LogOwner, "stepIndex">,
  { stepIndex, offset }: LogPosition,
  lastStep: number,
  limit: number,
): Promise<StoredLogChunk[]> {
  const owner = { actionId, attempt, stepIndex };
  const ofStep = (await selectOfStep(db, { ...owner, offset, limit: limit + 1 })).flatMap((piece) => {
    const known = Math.max(0, offset - piece.offset);
    if (known >= piece.data.length) return [];
    return [{ ...piece, offset: piece.offset + known, data: piece.data.subarray(known) }];
  });
  return ofStep.length > 0 ? ofStep : selectOfLaterSteps(db, { ...owner, lastStep, limit });
}

const deleteEarlier = prepared<Omit<LogOwner, "stepIndex">, unknown>((db, { actionId, attempt }) =>
  db.deleteFrom("step_log").where("action_id", "=", actionId).where("attempt", "<", attempt),
);

/** Removes the logs of earlier attempts, which nothing returns any more. */
export async function removeEarlierLogs(
  tx: WriteTransaction,
  owner: Omit<LogOwner, "stepIndex">,
): Promise<void> {
  await deleteEarlier(tx.db, owner);
}
