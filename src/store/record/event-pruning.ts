import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";

/**
 * Returns the organizations whose oldest event is from before `cutoff`, in milliseconds since 1970 UTC.
 */
export async function findOrganizationsWithEventsBefore(db: Reader, cutoff: number): Promise<string[]> {
  const rows = await builderOf(db)
    .selectFrom("organization")
    .select("id")
    .where((eb) =>
      eb(
        eb
          .selectFrom("event")
          .select("event.at")
          .whereRef("event.organization_id", "=", "organization.id")
          .orderBy("event.sequence")
          .limit(1),
        "<",
        cutoff,
      ),
    )
    .orderBy("id")
    .execute();
  return rows.map(({ id }) => id);
}

/**
 * Removes the oldest events of an organization, up to `limit`, while they are from before `cutoff`,
 * and stores the number of the last of them: the remaining events are the end of the record,
 * without gaps. It opens the trigger that protects events, and closes it, inside this transaction.
 * @returns the number of removed events
 */
export async function removeEventsBefore(
  { db }: WriteTransaction,
  { organizationId }: Scope,
  cutoff: number,
  limit: number,
): Promise<number> {
  const oldest = await builderOf(db)
    .selectFrom("event")
    .select(["sequence", "at"])
    .where("organization_id", "=", organizationId)
    .orderBy("sequence")
    .limit(limit)
    .execute();
  const kept = oldest.findIndex(({ at }) => at >= cutoff);
  const removed = kept === -1 ? oldest : oldest.slice(0, kept);
  const last = removed.at(-1);
  if (!last) return 0;
  await builderOf(db).insertInto("pruning").values({ organization_id: organizationId }).execute();
  await builderOf(db)
    .deleteFrom("event")
    .where("organization_id", "=", organizationId)
    .where("sequence", "<=", last.sequence)
    .execute();
  await builderOf(db).deleteFrom("pruning").where("organization_id", "=", organizationId).execute();
  await builderOf(db)
    .updateTable("organization")
    .set({ pruned_sequence: last.sequence })
    .where("id", "=", organizationId)
    .execute();
  return removed.length;
}
