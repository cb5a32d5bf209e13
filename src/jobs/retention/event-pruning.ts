import type { Keep } from "../../domain/policy/retention.ts";
import { pastEventsBound } from "../../services/access/retention/past.ts";
import { findPrunableEvents, findPrunedSequence, removeEvents } from "../../store/record/event-pruning.ts";
import { type Scope, type Store, type WriteTransaction, within } from "../../store/store.ts";
import { writeThenPause } from "../job-writes.ts";
import { BatchSize } from "./batch-size.ts";

/** Maximum number of events checked together and removed per transaction, which other writes wait for. */
const EVENTS_PER_BATCH = 1_000;

/**
 * Removes the events that an organization no longer keeps. This is bookkeeping, so it leaves no audit row. The audit
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
  let after = await findPrunedSequence(store.reader, scope);
  const size = new BatchSize();
  for (;;) {
    const old = await findPrunableEvents(store.reader, scope, bound, after, EVENTS_PER_BATCH);
    for (let next = 0; next < old.length; ) {
      if (draining?.aborted) return removed;
      next = Math.min(next + size.of(EVENTS_PER_BATCH), old.length);
      const [from, last] = [after, old[next - 1]?.sequence ?? after];
      const remove = (tx: WriteTransaction) => size.measure(() => removeEvents(tx, scope, from, last));
      removed += await writeThenPause(store, "job/event-pruning", remove, within(scope));
      after = last;
    }
    if (old.length < EVENTS_PER_BATCH) return removed;
  }
}
