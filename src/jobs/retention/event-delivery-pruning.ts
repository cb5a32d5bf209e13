import type { Keep } from "../../domain/policy/retention.ts";
import { ENTRIES_PER_BATCH, pastDeliveries } from "../../services/access/retention/past.ts";
import { removeDeliveriesByIds } from "../../store/access/event-subscription/event-delivery.ts";
import { type Scope, type Store, within } from "../../store/store.ts";
import { writeThenPause } from "../job-writes.ts";
import { BatchSize } from "./batch-size.ts";

/**
 * Removes the entries of the ledgers of event subscriptions that an organization keeps no longer. This is bookkeeping, so
 * it leaves no audit row.
 *
 * @param now milliseconds since 1970 UTC
 * @param draining ends the run between two writes
 * @returns the number of entries removed
 */
export async function pruneEventDeliveries(
  store: Store,
  scope: Scope,
  keep: Keep,
  now: number,
  draining?: AbortSignal,
): Promise<number> {
  let removed = 0;
  const size = new BatchSize();
  for await (const old of pastDeliveries(store, scope, keep, now)) {
    for (let next = 0; next < old.length && !draining?.aborted; ) {
      const ids = old.slice(next, next + size.of(ENTRIES_PER_BATCH)).map(({ id }) => id);
      next += ids.length;
      removed += await writeThenPause(
        store,
        "job/event-delivery-pruning",
        (tx) => size.measure(() => removeDeliveriesByIds(tx, scope, ids)),
        within(scope),
      );
    }
    if (draining?.aborted) break;
  }
  return removed;
}
