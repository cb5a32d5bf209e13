import { type Keep, pastDays, pastGrace } from "../../domain/policy/retention.ts";
import { DELIVERY_ID_RETENTION_MS } from "../../services/workflow/trigger/webhook-delivery.ts";
import { findWorkflowIds } from "../../store/access/retention/ended.ts";
import { type Scope, type Store, within } from "../../store/store.ts";
import { findOldDeliveries, removeDeliveries } from "../../store/workflow/webhook-delivery.ts";
import {
  findOldestTriggerEvents,
  findPastTriggerEventCount,
  type LedgerPart,
  removeTriggerEvents,
} from "../../store/workflow/workflow-trigger-event.ts";
import type { JobFactory } from "../job.ts";
import { writeInEach, writeThenPause } from "../job-writes.ts";
import type { Amount } from "./amount.ts";
import { BatchSize } from "./batch-size.ts";

const EVERY_MS = 600_000;

/** Number of delivery ids removed at a time: other writes wait for those of their organization. */
const ROWS_PER_BATCH = 1_000;

/** Number of entries that are looked at, and perhaps removed, at a time. */
const ENTRIES_PER_BATCH = 500;

/** Entries that are kept no longer, the oldest first: those of a part of the ledger from before a time. */
async function* pastEntries(store: Store, scope: Scope, keep: Keep, now: number) {
  const before = pastDays(keep, now);
  if (before !== undefined) yield* oldEntries(store, scope, {}, before);
  if (keep.count === 0) return;
  for (const workflowId of await findWorkflowIds(store.reader, scope)) {
    const id = await findPastTriggerEventCount(store.lister(scope), scope, workflowId, keep.count);
    const upTo = id && { upTo: { workflowId, id } };
    if (upTo) yield* oldEntries(store, scope, upTo, pastGrace("triggerEntries", now));
  }
}

/** Yields the entries of a part from before a time; it ends where a whole batch is younger. */
async function* oldEntries(store: Store, scope: Scope, part: LedgerPart, before: number) {
  for (let after = ""; ; ) {
    const batch = await findOldestTriggerEvents(store.reader, scope, part, after, ENTRIES_PER_BATCH);
    const old = batch.filter(({ at }) => at < before);
    if (old.length > 0) yield old;
    after = batch.at(-1)?.id ?? after;
    if (old.length === 0 || batch.length < ENTRIES_PER_BATCH) return;
  }
}

/** Returns how much {@link pruneTriggerEntries} would remove. */
export async function countPrunableTriggerEntries(
  store: Store,
  scope: Scope,
  keep: Keep,
  now: number,
): Promise<Amount> {
  // An entry may be past both bounds.
  const bytes = new Map<string, number>();
  for await (const old of pastEntries(store, scope, keep, now)) {
    for (const entry of old) bytes.set(entry.id, entry.bytes);
  }
  return { rows: bytes.size, bytes: [...bytes.values()].reduce((sum, each) => sum + each, 0) };
}

/**
 * Removes the entries of the ledger that an organization keeps no longer. This is bookkeeping, so it leaves no audit
 * row.
 *
 * @param now milliseconds since 1970 UTC
 * @param draining ends the run between two writes
 * @returns the number of entries removed
 */
export async function pruneTriggerEntries(
  store: Store,
  scope: Scope,
  keep: Keep,
  now: number,
  draining?: AbortSignal,
): Promise<number> {
  let removed = 0;
  const size = new BatchSize();
  for await (const old of pastEntries(store, scope, keep, now)) {
    for (let next = 0; next < old.length && !draining?.aborted; ) {
      const ids = old.slice(next, next + size.of(ENTRIES_PER_BATCH)).map(({ id }) => id);
      next += ids.length;
      removed += await writeThenPause(
        store,
        "job/trigger-pruning",
        (tx) => size.measure(() => removeTriggerEvents(tx, scope, ids)),
        within(scope),
      );
    }
    if (draining?.aborted) break;
  }
  return removed;
}

/**
 * Removes the ids of deliveries that are past their retention. This is bookkeeping, so it leaves no audit row.
 *
 * @param now milliseconds since 1970 UTC
 * @returns the number of ids removed
 */
export async function pruneDeliveries(store: Store, now: number): Promise<number> {
  let removed = 0;
  for (;;) {
    const found = await findOldDeliveries(store.reader, now - DELIVERY_ID_RETENTION_MS, ROWS_PER_BATCH);
    const batch = await writeInEach(store, "job/trigger-pruning", found, async (tx, { organizationId }) => {
      let rows = 0;
      for (const each of found)
        if (each.organizationId === organizationId) rows += await removeDeliveries(tx, each);
      return rows;
    });
    removed += batch;
    if (batch < ROWS_PER_BATCH) return removed;
  }
}

/** Removes old delivery ids. */
export const triggerPruningJob: JobFactory = ({ store, now }) => ({
  name: "trigger-pruning",
  everyMs: EVERY_MS,
  run: () => pruneDeliveries(store, now()),
});
