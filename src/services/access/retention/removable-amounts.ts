import type { Keep, RetainedKind } from "../../../domain/policy/retention.ts";
import { findBytes } from "../../../store/access/retention/parts.ts";
import {
  findHolders,
  findRemovableExecutions,
  findRemovableRuns,
  findRetries,
  type Holder,
} from "../../../store/access/retention/removable.ts";
import { findPrunableEvents, isPastEvent } from "../../../store/record/event-pruning.ts";
import type { Scope } from "../../../store/store.ts";
import { yieldToEventLoop } from "../../call/yield-to-event-loop.ts";
import {
  type ExecutionKind,
  pastDeliveries,
  pastEntries,
  pastEventsBound,
  pastExecutions,
  type RetentionReaders,
  tableOf,
} from "./past.ts";

/** Number of executions whose bytes are summed up together: each may have thousands of parts. */
const SUMMED_AT_ONCE = 20;

/** Number of events read at a time. */
const EVENTS_PER_BATCH = 1_000;

/** Amount of one kind that retention would remove. */
export interface RemovableAmount {
  readonly rows: number;
  /** Bytes as the quota counts them. */
  readonly bytes: number;
  /** The ids of the executions; empty for other kinds. */
  readonly ids: readonly string[];
  /** True if everything past its retention was counted. */
  readonly isAll: boolean;
}

/** A count of what retention would remove. */
export interface AmountQuery {
  readonly keep: Keep;
  /** A second retention: rows that also exceed this one are not counted. */
  readonly besides?: Keep;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
  /** Maximum number of rows past their retention that are read, the oldest first. */
  readonly most: number;
}

const NOTHING: RemovableAmount = { rows: 0, bytes: 0, ids: [], isAll: true };

/** Returns the amount of one kind that retention would remove now. Yields to the event loop in between. */
export async function countRemovable(
  store: RetentionReaders,
  scope: Scope,
  kind: RetainedKind,
  query: AmountQuery,
): Promise<RemovableAmount> {
  if (query.keep.days === 0 && query.keep.count === 0) return NOTHING;
  if (kind === "events") return countEvents(store, scope, query);
  if (kind === "triggerEntries") return countEntries(store, scope, query);
  const { keep, besides } = query;
  const going = await findGoing(store, scope, kind, keep, query);
  const gone = besides && (await findGoing(store, scope, kind, besides, query));
  const ids = [...going.ids].filter((id) => !gone?.ids.has(id));
  let bytes = 0;
  for (let first = 0; first < ids.length; first += SUMMED_AT_ONCE) {
    bytes += await findBytes(
      store.longReader,
      scope,
      tableOf(kind),
      ids.slice(first, first + SUMMED_AT_ONCE),
    );
    await yieldToEventLoop();
  }
  return { rows: ids.length, bytes, ids, isAll: going.isAll && (gone?.isAll ?? true) };
}

type Bounds = Pick<AmountQuery, "now" | "most">;

async function findGoing(
  store: RetentionReaders,
  scope: Scope,
  kind: ExecutionKind,
  keep: Keep,
  { now, most }: Bounds,
): Promise<{ readonly ids: Set<string>; readonly isAll: boolean }> {
  const going = new Set<string>();
  const holders: Holder[] = [];
  let left = most;
  let isAll = true;
  for await (const past of pastExecutions(store, scope, kind, keep, now)) {
    isAll = past.ids.length <= left;
    const ids = past.ids.slice(0, left);
    left -= ids.length;
    if (kind === "executions") {
      const free = (await findRemovableExecutions(store.longReader, scope, ids)).map(({ id }) => id);
      for (const id of free) going.add(id);
      holders.push(...(await findRetries(store.longReader, scope, free)));
    } else {
      const free = await findRemovableRuns(store.longReader, scope, ids);
      for (const id of free) going.add(id);
      holders.push(...(await findHolders(store.longReader, scope, free)));
    }
    if (!isAll) break;
    await yieldToEventLoop();
  }
  keepNeeded(going, holders);
  return { ids: going, isAll };
}

/**
 * Removes from `going`, in place, the executions that something kept needs, transitively. Each holder is visited
 * once, since a conversation may be long.
 */
function keepNeeded(going: Set<string>, holders: readonly Holder[]): void {
  const heldBy = new Map<string, string[]>();
  const staying: string[] = [];
  for (const { id, holderId } of holders) {
    const held = heldBy.get(holderId);
    if (!going.has(holderId)) staying.push(id);
    else if (held) held.push(id);
    else heldBy.set(holderId, [id]);
  }
  // The list grows during the iteration.
  for (const id of staying) if (going.delete(id)) staying.push(...(heldBy.get(id) ?? []));
}

async function countEntries(
  store: RetentionReaders,
  scope: Scope,
  { keep, besides, ...bounds }: AmountQuery,
): Promise<RemovableAmount> {
  const going = await findOldEntries(store, scope, keep, bounds);
  const gone = besides && (await findOldEntries(store, scope, besides, bounds));
  for (const id of gone?.bytes.keys() ?? []) going.bytes.delete(id);
  const bytes = [...going.bytes.values()].reduce((sum, each) => sum + each, 0);
  return { rows: going.bytes.size, bytes, ids: [], isAll: going.isAll && (gone?.isAll ?? true) };
}

async function findOldEntries(store: RetentionReaders, scope: Scope, keep: Keep, { now, most }: Bounds) {
  // An entry may exceed both bounds, but is counted once.
  const bytes = new Map<string, number>();
  let left = most;
  for (const past of [pastEntries, pastDeliveries]) {
    for await (const old of past(store, scope, keep, now)) {
      for (const entry of old.slice(0, left)) bytes.set(entry.id, entry.bytes);
      if (old.length > left) return { bytes, isAll: false };
      left -= old.length;
      await yieldToEventLoop();
    }
  }
  return { bytes, isAll: true };
}

async function countEvents(
  store: RetentionReaders,
  scope: Scope,
  { keep, besides, now, most }: AmountQuery,
): Promise<RemovableAmount> {
  const bound = await pastEventsBound(store, scope, keep, now);
  const gone = besides && (await pastEventsBound(store, scope, besides, now));
  let [rows, bytes, left] = [0, 0, most];
  for (let after: number | undefined = 0; bound && after !== undefined; ) {
    const batch = await findPrunableEvents(store.longReader, scope, bound, after, EVENTS_PER_BATCH);
    for (const event of batch.slice(0, left)) {
      if (gone && isPastEvent(gone, event)) continue;
      rows += 1;
      bytes += event.bytes;
    }
    if (batch.length > left) return { rows, bytes, ids: [], isAll: false };
    left -= batch.length;
    after = batch.at(-1)?.sequence;
    await yieldToEventLoop();
  }
  return { rows, bytes, ids: [], isAll: true };
}
