import type { Keep } from "../../domain/policy/retention.ts";
import { pastEventsBound } from "../../services/access/retention/past.ts";
import { removeEvents } from "../../store/record/event-pruning.ts";
import { type Scope, type Store, type WriteTransaction, within } from "../../store/store.ts";
import { writeThenPause } from "../job-writes.ts";
import { BatchSize } from "./batch-size.ts";

/** Number of events removed per transaction at most, which other writes wait for. */
const EVENTS_PER_BATCH = 1_000;

/**
 * Removes the events that an organization keeps no longer. This is bookkeeping, so it leaves no audit row. The audit
 * trail itself is kept.
 *
 * @param now milliseconds since 1970 UTC
 * @param draining ends the run between two writes
 * @returns the number of events removed
 */
export async function pruneEvents(
  store: Store,
  scope: Scope,
  keep: Keep,
  now: number,
  draining?: AbortSignal,
): Promise<number> {
  const bound = await pastEventsBound(store, scope, keep, now);
  if (!bound) return 0;
  let removed = 0;
  const size = new BatchSize();
  for (;;) {
    const most = size.of(EVENTS_PER_BATCH);
    const remove = (tx: WriteTransaction) => size.measure(() => removeEvents(tx, scope, bound, most));
    const batch = await writeThenPause(store, "job/event-pruning", remove, within(scope));
    removed += batch;
    if (batch < most || draining?.aborted) return removed;
  }
}
