import { findOrganizationsWithEventsBefore, removeEventsBefore } from "../store/record/event-pruning.ts";
import { type Store, SYSTEM } from "../store/store.ts";
import type { MakeJob } from "./job.ts";

const EVERY_MS = 3_600_000;

const DAY_MS = 24 * 3_600_000;

/** Events removed at a time: each time is one transaction, which other writes wait for. */
const EVENTS_A_BATCH = 1_000;

/**
 * Removes events from before `cutoff`, in milliseconds since 1970 UTC. It is
 * bookkeeping, so it leaves no audit row: the audit trail itself is kept.
 *
 * @returns how many were removed
 */
export async function pruneEvents(store: Store, cutoff: number): Promise<number> {
  let removed = 0;
  for (const organizationId of await findOrganizationsWithEventsBefore(store.reader, cutoff)) {
    for (;;) {
      const batch = await store.write(SYSTEM, "job/event-pruning", (tx) =>
        removeEventsBefore(tx, { organizationId }, cutoff, EVENTS_A_BATCH),
      );
      removed += batch;
      if (batch < EVENTS_A_BATCH) break;
    }
  }
  return removed;
}

export const eventPruningJob: MakeJob = ({ store, now, settings }) => ({
  name: "event-pruning",
  everyMs: EVERY_MS,
  run: () => pruneEvents(store, now() - settings.eventRetention * DAY_MS),
});
