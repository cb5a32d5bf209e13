import { DELIVERY_ID_RETENTION_MS } from "../services/workflow/trigger/webhook-delivery.ts";
import { type Store, SYSTEM, type WriteTransaction } from "../store/store.ts";
import { removeDeliveriesBefore } from "../store/workflow/webhook-delivery.ts";
import { removeTriggerEventsBefore } from "../store/workflow/workflow-trigger-event.ts";
import type { JobFactory } from "./job.ts";

const EVERY_MS = 600_000;

const HOUR_MS = 3_600_000;

/** The retention of entries of the trigger ledger: 30 days. */
const LEDGER_RETENTION_MS = 30 * 24 * HOUR_MS;

/** Number of rows removed per transaction, which other writes wait for. */
const ROWS_PER_BATCH = 1_000;

/**
 * Removes the entries of the ledger and the delivery ids that are past their
 * retention. This is bookkeeping, so it leaves no audit row.
 *
 * @param now milliseconds since 1970 UTC
 * @returns the number of entries and delivery ids removed
 */
export async function pruneTriggers(store: Store, now: number): Promise<number> {
  const entries = await removeInBatches(store, (tx) =>
    removeTriggerEventsBefore(tx, now - LEDGER_RETENTION_MS, ROWS_PER_BATCH),
  );
  const deliveries = await removeInBatches(store, (tx) =>
    removeDeliveriesBefore(tx, now - DELIVERY_ID_RETENTION_MS, ROWS_PER_BATCH),
  );
  return entries + deliveries;
}

async function removeInBatches(
  store: Store,
  remove: (tx: WriteTransaction) => Promise<number>,
): Promise<number> {
  let removed = 0;
  for (;;) {
    const batch = await store.write(SYSTEM, "job/trigger-pruning", remove);
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
