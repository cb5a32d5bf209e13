import { DELIVERY_ID_RETENTION_MS } from "../services/workflow/trigger/webhook-delivery.ts";
import type { Scope, Store, WriteTransaction } from "../store/store.ts";
import { findOldDeliveries, removeDeliveries } from "../store/workflow/webhook-delivery.ts";
import { findOldTriggerEvents, removeTriggerEvents } from "../store/workflow/workflow-trigger-event.ts";
import type { JobFactory } from "./job.ts";
import { writeInEach } from "./job-writes.ts";

const EVERY_MS = 600_000;

const HOUR_MS = 3_600_000;

/** The retention of entries of the trigger ledger: 30 days. */
const LEDGER_RETENTION_MS = 30 * 24 * HOUR_MS;

/** Number of rows removed at a time: other writes wait for those of their organization. */
const ROWS_PER_BATCH = 1_000;

/**
 * Removes the entries of the ledger and the delivery ids that are past their
 * retention. This is bookkeeping, so it leaves no audit row.
 *
 * @param now milliseconds since 1970 UTC
 * @returns the number of entries and delivery ids removed
 */
export async function pruneTriggers(store: Store, now: number): Promise<number> {
  const findEvents = () => findOldTriggerEvents(store.reader, now - LEDGER_RETENTION_MS, ROWS_PER_BATCH);
  const entries = await removeInBatches(store, findEvents, (tx, { organizationId, until }) =>
    removeTriggerEvents(tx, { organizationId }, until),
  );
  const findDeliveries = () =>
    findOldDeliveries(store.reader, now - DELIVERY_ID_RETENTION_MS, ROWS_PER_BATCH);
  return entries + (await removeInBatches(store, findDeliveries, removeDeliveries));
}

async function removeInBatches<T extends Scope>(
  store: Store,
  find: () => Promise<readonly T[]>,
  remove: (tx: WriteTransaction, found: T) => Promise<number>,
): Promise<number> {
  let removed = 0;
  for (;;) {
    const found = await find();
    const batch = await writeInEach(store, "job/trigger-pruning", found, async (tx, { organizationId }) => {
      let rows = 0;
      for (const each of found) if (each.organizationId === organizationId) rows += await remove(tx, each);
      return rows;
    });
    removed += batch;
    if (batch < ROWS_PER_BATCH) return removed;
  }
}

/** Removes old entries of the trigger ledger and old delivery ids. */
export const triggerPruningJob: JobFactory = ({ store, now }) => ({
  name: "trigger-pruning",
  everyMs: EVERY_MS,
  run: () => pruneTriggers(store, now()),
});
