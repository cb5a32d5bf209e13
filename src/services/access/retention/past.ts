import { EventDeliveryState } from "#gen/service/v1/event_subscription_pb.js";
import { type Keep, pastDays, pastGrace } from "../../../domain/policy/retention.ts";
import {
  type AgedDelivery,
  findLedgerIds,
  findOldestDeliveries,
  findPastDeliveryCount,
} from "../../../store/access/event-subscription/event-delivery.ts";
import {
  type Ended,
  type EndedQuery,
  type EndedTable,
  findEnded,
  findPastCount,
  findWorkflowIds,
} from "../../../store/access/retention/ended.ts";
import { type EventBound, findPastEventCount } from "../../../store/record/event-pruning.ts";
import type { Scope, Store } from "../../../store/store.ts";
import {
  findOldestTriggerEvents,
  findPastTriggerEventCount,
  type LedgerPart,
} from "../../../store/workflow/workflow-trigger-event.ts";

/** The database readers that retention uses. */
export type RetentionReaders = Pick<Store, "longReader" | "lister">;

/** Number of executions read at a time. */
export const EXECUTIONS_PER_BATCH = 200;

/** Number of entries that are read, and possibly removed, at a time. */
export const ENTRIES_PER_BATCH = 500;

/** Executions that have exceeded their retention, with the reason. */
export interface Past {
  readonly ids: readonly string[];
  readonly reason: string;
}

/** The kinds of executions, and the tables of their rows. */
const TABLES = { executions: "workflow_execution", agentExecutions: "agent_execution" } as const;

export type ExecutionKind = keyof typeof TABLES;

export const tableOf = (kind: ExecutionKind): EndedTable => TABLES[kind];

/**
 * Yields the executions that exceed an organization's retention, even if something else needs them. Yields some
 * twice.
 */
export async function* pastExecutions(
  store: RetentionReaders,
  scope: Scope,
  kind: ExecutionKind,
  keep: Keep,
  now: number,
): AsyncGenerator<Past> {
  const table = TABLES[kind];
  const before = pastDays(keep, now);
  if (before !== undefined) {
    const reason = `kept for ${keep.days} ${keep.days === 1 ? "day" : "days"}`;
    yield* pages(store, scope, { table, before }, reason);
  }
  if (keep.count === 0) return;
  const reason = keep.count === 1 ? "only the newest is kept" : `the newest ${keep.count} are kept`;
  const parts = kind === "executions" ? await findWorkflowIds(store.longReader, scope) : [undefined];
  for (const workflowId of parts) {
    const id = await findPastCount(store.lister(scope), scope, table, workflowId, keep.count);
    const query = { table, before: pastGrace(kind, now) };
    if (id) yield* pages(store, scope, { ...query, upTo: { id, workflowId } }, reason);
  }
}

async function* pages(
  store: RetentionReaders,
  scope: Scope,
  query: EndedQuery,
  reason: string,
): AsyncGenerator<Past> {
  for (let after: Ended | undefined; ; ) {
    const page = await findEnded(store.lister(scope), scope, query, after, EXECUTIONS_PER_BATCH);
    if (page.length > 0) yield { ids: page.map(({ id }) => id), reason };
    after = page.at(-1);
    if (page.length < EXECUTIONS_PER_BATCH) return;
  }
}

/** Yields the ledger entries that exceed the retention, oldest first. Yields some twice. */
export async function* pastEntries(store: RetentionReaders, scope: Scope, keep: Keep, now: number) {
  const before = pastDays(keep, now);
  if (before !== undefined) yield* oldEntries(store, scope, {}, before);
  if (keep.count === 0) return;
  for (const workflowId of await findWorkflowIds(store.longReader, scope)) {
    const id = await findPastTriggerEventCount(store.lister(scope), scope, workflowId, keep.count);
    const upTo = id && { upTo: { workflowId, id } };
    if (upTo) yield* oldEntries(store, scope, upTo, pastGrace("triggerEntries", now));
  }
}

/** Yields the entries of a part from before a time. Ends at the first batch that is entirely younger. */
async function* oldEntries(store: RetentionReaders, scope: Scope, part: LedgerPart, before: number) {
  for (let after = ""; ; ) {
    const batch = await findOldestTriggerEvents(store.longReader, scope, part, after, ENTRIES_PER_BATCH);
    const old = batch.filter(({ at }) => at < before);
    if (old.length > 0) yield old;
    after = batch.at(-1)?.id ?? after;
    if (old.length === 0 || batch.length < ENTRIES_PER_BATCH) return;
  }
}

/** Maximum number of entries in the ledger of an event subscription, regardless of the organization's retention. */
const MAX_LEDGER_ENTRIES = 10_000;

/**
 * Yields the ledger entries of event subscriptions that exceed the retention, the oldest of each subscription first.
 * Yields some twice. Their retention is that of trigger entries. Entries that are still to be sent are kept.
 */
export async function* pastDeliveries(
  store: RetentionReaders,
  scope: Scope,
  keep: Keep,
  now: number,
): AsyncGenerator<readonly AgedDelivery[]> {
  const before = pastDays(keep, now);
  for (const id of await findLedgerIds(store.longReader, scope)) {
    const past = (count: number) => findPastDeliveryCount(store.lister(scope), scope, id, count);
    const upTo = keep.count === 0 ? undefined : await past(keep.count);
    const most = await past(MAX_LEDGER_ENTRIES);
    const grace = pastGrace("triggerEntries", now);
    const isPast = (entry: AgedDelivery) =>
      (before !== undefined && entry.at < before) ||
      (upTo !== undefined && entry.id <= upTo && entry.at < grace) ||
      (most !== undefined && entry.id <= most);
    for (let after = ""; ; ) {
      const batch = await findOldestDeliveries(store.longReader, scope, id, after, ENTRIES_PER_BATCH);
      const old = batch.filter(isPast);
      const ended = old.filter(({ state }) => isEnded(state));
      if (ended.length > 0) yield ended;
      after = batch.at(-1)?.id ?? after;
      if (old.length === 0 || batch.length < ENTRIES_PER_BATCH) break;
    }
  }
}

const isEnded = (state: number): boolean =>
  state === EventDeliveryState.DELIVERED || state === EventDeliveryState.FAILED;

/** Returns the bound of the events that exceed an organization's retention; undefined when it keeps all. */
export async function pastEventsBound(
  store: RetentionReaders,
  scope: Scope,
  keep: Keep,
  now: number,
): Promise<EventBound | undefined> {
  const before = pastDays(keep, now);
  if (before === undefined && keep.count === 0) return undefined;
  const upTo = keep.count === 0 ? 0 : await findPastEventCount(store.lister(scope), scope, keep.count);
  return { before, upTo, spared: pastGrace("events", now) };
}
