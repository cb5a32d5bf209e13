import { findOrganizationsWithEventsBefore, removeEventsBefore } from "../store/record/event-pruning.ts";
import { type Store, SYSTEM, type WriteTransaction, within } from "../store/store.ts";
import type { JobFactory } from "./job.ts";

const EVERY_MS = 3_600_000;

const DAY_MS = 24 * 3_600_000;

/** Number of events removed per transaction, which other writes wait for. */
const EVENTS_PER_BATCH = 1_000;

/**
 * Removes the events that happened before `cutoff`. This is bookkeeping, so it
 * leaves no audit row. The audit trail itself is kept.
 *
 * @param cutoff milliseconds since 1970 UTC
 * @returns the number of events removed
 */
export async function pruneEvents(store: Store, cutoff: number): Promise<number> {
  let removed = 0;
  for (const organizationId of await findOrganizationsWithEventsBefore(store.reader, cutoff)) {
    const scope = { organizationId };
    const remove = (tx: WriteTransaction) => removeEventsBefore(tx, scope, cutoff, EVENTS_PER_BATCH);
    for (;;) {
      const batch = await store.write(SYSTEM, "job/event-pruning", remove, within(scope));
      removed += batch;
      if (batch < EVENTS_PER_BATCH) break;
    }
  }
  return removed;
}

/** Removes events past their retention. */
export const eventPruningJob: JobFactory = ({ store, now, settings }) => ({
  name: "event-pruning",
  everyMs: EVERY_MS,
  run: () => pruneEvents(store, now() - settings.eventRetention * DAY_MS),
});
