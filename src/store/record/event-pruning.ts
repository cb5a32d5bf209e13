import { sql } from "kysely";
import { checkDeadline } from "../expressions.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";

/** The events that are no longer kept; times in milliseconds since 1970 UTC. */
export interface EventBound {
  /** Events before this time are removed; undefined if age does not matter. */
  readonly before: number | undefined;
  /** Events up to this number that happened before `spared` are removed; 0 if the number does not matter. */
  readonly upTo: number;
  readonly spared: number;
}

/** Returns whether an event is no longer kept. */
export const isPastEvent = (
  { before, upTo, spared }: EventBound,
  { sequence, at }: { readonly sequence: number; readonly at: number },
): boolean => (before !== undefined && at < before) || (sequence <= upTo && at < spared);

/** Returns the number of the newest event that is not among the `count` newest; 0 when there is none. */
export async function findPastEventCount(
  db: Reader,
  { organizationId }: Scope,
  count: number,
): Promise<number> {
  const row = await builderOf(db)
    .selectFrom("event")
    .select("sequence")
    .where(checkDeadline())
    .where("organization_id", "=", organizationId)
    .orderBy("sequence", "desc")
    .offset(count)
    .limit(1)
    .executeTakeFirst();
  return row?.sequence ?? 0;
}

/** Returns the number of the last removed event, up to which none exists; 0 when none was removed. */
export async function findPrunedSequence(db: Reader, { organizationId }: Scope): Promise<number> {
  const row = await builderOf(db)
    .selectFrom("organization")
    .select("pruned_sequence")
    .where("id", "=", organizationId)
    .executeTakeFirst();
  return row?.pruned_sequence ?? 0;
}

/**
 * Returns the bytes, numbers and times of up to `limit` of the oldest events after a number that are no longer kept.
 */
export async function findPrunableEvents(
  db: Reader,
  { organizationId }: Scope,
  bound: EventBound,
  after: number,
  limit: number,
): Promise<{ readonly sequence: number; readonly at: number; readonly bytes: number }[]> {
  const oldest = await builderOf(db)
    .selectFrom("event")
    .select(["sequence", "at"])
    .select(
      sql<number>`octet_length(resource_id) + octet_length(resource_type) + octet_length(kind)`.as("bytes"),
    )
    .where("organization_id", "=", organizationId)
    .where("sequence", ">", after)
    .orderBy("sequence")
    .limit(limit)
    .execute();
  const kept = oldest.findIndex((event) => !isPastEvent(bound, event));
  return kept === -1 ? oldest : oldest.slice(0, kept);
}

/**
 * Removes the oldest events of an organization up to a number, and stores that number: the remaining events are the
 * end of the record, without gaps. It opens the trigger that protects events, and closes it, inside this transaction.
 *
 * @param after number up to which no event exists: below it the engine would scan removed rows not yet cleaned up
 * @returns the number of removed events
 */
export async function removeEvents(
  { db }: WriteTransaction,
  { organizationId }: Scope,
  after: number,
  last: number,
): Promise<number> {
  await openForPruning(db, { organizationId });
  const { numDeletedRows } = await builderOf(db)
    .deleteFrom("event")
    .where("organization_id", "=", organizationId)
    .where("sequence", ">", after)
    .where("sequence", "<=", last)
    .executeTakeFirstOrThrow();
  await closeAfterPruning(db, { organizationId });
  await setPruned(db, { organizationId, last });
  return Number(numDeletedRows);
}

const openForPruning = prepared<Scope, unknown>((db, { organizationId }) =>
  db.insertInto("pruning").values({ organization_id: organizationId }),
);

const closeAfterPruning = prepared<Scope, unknown>((db, { organizationId }) =>
  db.deleteFrom("pruning").where("organization_id", "=", organizationId),
);

const setPruned = prepared<Scope & { last: number }, unknown>((db, { organizationId, last }) =>
  db
    .updateTable("organization")
    .set({ pruned_sequence: last })
    .where("id", "=", organizationId)
    .where("pruned_sequence", "<", last),
);
