import { DELIVERY_MS } from "../services/workflow/trigger/webhook.ts";
import { type Store, SYSTEM, type WriteTransaction } from "../store/store.ts";
import { removeDeliveriesBefore } from "../store/workflow/webhook-delivery.ts";
import { removeTriggerEventsBefore } from "../store/workflow/workflow-trigger-event.ts";
import type { MakeJob } from "./job.ts";

const EVERY_MS = 600_000;

const HOUR_MS = 3_600_000;

/** How long entries of the ledger of triggers are kept (issue 4: 30 days). */
const LEDGER_MS = 30 * 24 * HOUR_MS;

/** Rows removed at a time: each time is one transaction, which other writes wait for. */
const ROWS_A_BATCH = 1_000;

/**
 * Removes entries of the ledger, and ids of deliveries, that are too old. It is
 * bookkeeping, so it leaves no audit row.
 *
 * @param now milliseconds since 1970 UTC
 * @returns how many of both were removed
 */
export async function pruneTriggers(store: Store, now: number): Promise<number> {
  const entries = await inBatches(store, (tx) =>
    removeTriggerEventsBefore(tx, now - LEDGER_MS, ROWS_A_BATCH),
  );
  const deliveries = await inBatches(store, (tx) =>
    removeDeliveriesBefore(tx, now - DELIVERY_MS, ROWS_A_BATCH),
  );
  return entries + deliveries;
}

async function inBatches(store: Store, remove: (tx: WriteTransaction) => Promise<number>): Promise<number> {
  let removed = 0;
  for (;;) {
    const batch = await store.write(SYSTEM, "job/trigger-pruning", remove);
    removed += batch;
    if (batch < ROWS_A_BATCH) return removed;
  }
}

export const triggerPruningJob: MakeJob = ({ store, now }) => ({
  name: "trigger-pruning",
  everyMs: EVERY_MS,
  run: () => pruneTriggers(store, now()),
});
