import { type Keep, pastDays, pastGrace } from "../../domain/policy/retention.ts";
import {
  type EventBound,
  findPastEventCount,
  findPrunableEvents,
  removeEvents,
} from "../../store/record/event-pruning.ts";
import { type Scope, type Store, type WriteTransaction, within } from "../../store/store.ts";
import { writeThenPause } from "../job-writes.ts";
import type { Amount } from "./amount.ts";
import { BatchSize } from "./batch-size.ts";

/** Number of events removed per transaction at most, which other writes wait for. */
const EVENTS_PER_BATCH = 1_000;

/** Returns which events an organization keeps no longer; undefined when it keeps all. */
async function boundOf(store: Store, scope: Scope, keep: Keep, now: number): Promise<EventBound | undefined> {
  const before = pastDays(keep, now);
  if (before === undefined && keep.count === 0) return undefined;
  const upTo = keep.count === 0 ? 0 : await findPastEventCount(store.lister(scope), scope, keep.count);
  return { before, upTo, spared: pastGrace("events", now) };
}

/** Returns how much {@link pruneEvents} would remove. */
export async function countPrunableEvents(
  store: Store,
  scope: Scope,
  keep: Keep,
  now: number,
): Promise<Amount> {
  let amount: Amount = { rows: 0, bytes: 0 };
  const bound = await boundOf(store, scope, keep, now);
  for (let after: number | undefined = 0; bound && after !== undefined; ) {
    const batch = await findPrunableEvents(store.reader, scope, bound, after, EVENTS_PER_BATCH);
    const bytes = batch.reduce((sum, event) => sum + event.bytes, amount.bytes);
    amount = { rows: amount.rows + batch.length, bytes };
    after = batch.at(-1)?.sequence;
  }
  return amount;
}

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
  const bound = await boundOf(store, scope, keep, now);
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
