import type { Keep } from "../../domain/policy/retention.ts";
import { ENTRIES_PER_BATCH, pastDeliveries, pastEntries } from "../../services/access/retention/past.ts";
import { removeDeliveriesByIds } from "../../store/access/event-subscription/event-delivery.ts";
import { type Scope, type Store, type WriteTransaction, within } from "../../store/store.ts";
import { removeTriggerEvents } from "../../store/workflow/workflow-trigger-event.ts";
import { writeThenPause } from "../job-writes.ts";
import { BatchSize } from "./batch-size.ts";

/** Entries of a ledger, and the function that removes them. */
interface EntryRemoval {
  /** Name of the job in metrics and the log. */
  readonly operation: string;
  readonly batches: AsyncIterable<readonly { readonly id: string }[]>;
  /** Returns the number of entries that still existed. */
  readonly remove: (tx: WriteTransaction, ids: readonly string[]) => Promise<number>;
}

/**
 * Removes the entries of trigger ledgers that an organization no longer keeps. This is bookkeeping, so it leaves no
 * audit row.
 *
 * @param now milliseconds since 1970 UTC
 * @param draining ends the run between two writes
 * @returns the number of entries removed
 */
export function pruneTriggerEntries(
  store: Store,
  scope: Scope,
  keep: Keep,
  now: number,
  draining?: AbortSignal,
): Promise<number> {
  const removal: EntryRemoval = {
    operation: "job/trigger-pruning",
    batches: pastEntries(store, scope, keep, now),
    remove: (tx, ids) => removeTriggerEvents(tx, scope, ids),
  };
  return removeEntries(store, scope, removal, draining);
}

/**
 * Removes the entries of event subscription ledgers that an organization no longer keeps. This is bookkeeping, so it
 * leaves no audit row.
 *
 * @param now milliseconds since 1970 UTC
 * @param draining ends the run between two writes
 * @returns the number of entries removed
 */
export function pruneEventDeliveries(
  store: Store,
  scope: Scope,
  keep: Keep,
  now: number,
  draining?: AbortSignal,
): Promise<number> {
  const removal: EntryRemoval = {
    operation: "job/event-delivery-pruning",
    batches: pastDeliveries(store, scope, keep, now),
    remove: (tx, ids) => removeDeliveriesByIds(tx, scope, ids),
  };
  return removeEntries(store, scope, removal, draining);
}

async function removeEntries(
  store: Store,
  scope: Scope,
  { operation, batches, remove }: EntryRemoval,
  draining?: AbortSignal,
): Promise<number> {
  let removed = 0;
  const size = new BatchSize();
  for await (const old of batches) {
    for (let next = 0; next < old.length && !draining?.aborted; ) {
      const ids = old.slice(next, next + size.of(ENTRIES_PER_BATCH)).map(({ id }) => id);
      next += ids.length;
      removed += await writeThenPause(
        store,
        operation,
        (tx) => size.measure(() => remove(tx, ids)),
        within(scope),
      );
    }
    if (draining?.aborted) break;
  }
  return removed;
}
