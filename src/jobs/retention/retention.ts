import { type RetainedKind, type Retention, retentionOf } from "../../domain/policy/retention.ts";
import { findBytes } from "../../store/access/retention/parts.ts";
import {
  findHolders,
  findRemovableExecutions,
  findRemovableRuns,
  findRetries,
  type Holder,
} from "../../store/access/retention/removable.ts";
import { findRetainingOrganizations } from "../../store/policy/organization-policies.ts";
import type { Scope, Store } from "../../store/store.ts";
import type { JobFactory } from "../job.ts";
import type { Amount } from "./amount.ts";
import { countPrunableEvents, pruneEvents } from "./event-pruning.ts";
import { type ExecutionKind, pastExecutions, removePastExecutions, tableOf } from "./execution-removal.ts";
import { countPrunableTriggerEntries, pruneTriggerEntries } from "./trigger-pruning.ts";

const EVERY_MS = 3_600_000;

/** Number of executions whose bytes are summed up at a time. */
const SUMMED_AT_ONCE = 200;

/** The removals of one kind in one organization. */
export interface Removal extends Amount {
  readonly organizationId: string;
  /** Name of the organization. */
  readonly name: string;
  readonly kind: RetainedKind;
}

/**
 * Removes what organizations keep no longer.
 *
 * @param defaults what an organization keeps whose policy does not say it
 * @param now milliseconds since 1970 UTC
 * @param onRemoved called for each organization and kind of which anything was removed
 * @param draining ends the run between two writes; the next one goes on
 * @throws AggregateError of the failures, after all other organizations are done
 */
export async function applyRetention(
  store: Store,
  defaults: Retention,
  now: number,
  onRemoved: (removal: Omit<Removal, "bytes">) => void = () => {},
  draining?: AbortSignal,
): Promise<void> {
  const failures: unknown[] = [];
  for (const { organizationId, name, policies } of await findRetainingOrganizations(store.reader)) {
    const keep = retentionOf(policies.retention, defaults);
    const scope = { organizationId };
    const steps: readonly [RetainedKind, () => Promise<number>][] = [
      [
        "agentExecutions",
        () => removePastExecutions(store, scope, "agentExecutions", keep.agentExecutions, now, draining),
      ],
      ["executions", () => removePastExecutions(store, scope, "executions", keep.executions, now, draining)],
      ["triggerEntries", () => pruneTriggerEntries(store, scope, keep.triggerEntries, now, draining)],
      ["events", () => pruneEvents(store, scope, keep.events, now, draining)],
    ];
    for (const [kind, remove] of steps) {
      if (draining?.aborted) break;
      try {
        const rows = await remove();
        if (rows > 0) onRemoved({ organizationId, name, kind, rows });
      } catch (error) {
        failures.push(error);
      }
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, "retention failed in some organizations");
}

/** Returns what {@link applyRetention} would remove now, without removing it. */
export async function previewRetention(store: Store, defaults: Retention, now: number): Promise<Removal[]> {
  const removals: Removal[] = [];
  for (const { organizationId, name, policies } of await findRetainingOrganizations(store.reader)) {
    const keep = retentionOf(policies.retention, defaults);
    const scope = { organizationId };
    const amounts: readonly [RetainedKind, Amount][] = [
      ["executions", await countPastExecutions(store, scope, "executions", keep, now)],
      ["agentExecutions", await countPastExecutions(store, scope, "agentExecutions", keep, now)],
      ["triggerEntries", await countPrunableTriggerEntries(store, scope, keep.triggerEntries, now)],
      ["events", await countPrunableEvents(store, scope, keep.events, now)],
    ];
    for (const [kind, amount] of amounts)
      if (amount.rows > 0) removals.push({ organizationId, name, kind, ...amount });
  }
  return removals;
}

async function countPastExecutions(
  store: Store,
  scope: Scope,
  kind: ExecutionKind,
  keep: Retention,
  now: number,
): Promise<Amount> {
  const going = new Set<string>();
  const holders: Holder[] = [];
  for await (const { ids } of pastExecutions(store, scope, kind, keep[kind], now)) {
    if (kind === "executions") {
      const free = (await findRemovableExecutions(store.reader, scope, ids)).map(({ id }) => id);
      for (const id of free) going.add(id);
      holders.push(...(await findRetries(store.reader, scope, free)));
    } else {
      const free = await findRemovableRuns(store.reader, scope, ids);
      for (const id of free) going.add(id);
      holders.push(...(await findHolders(store.reader, scope, free)));
    }
  }
  keepHeld(going, holders);
  const ids = [...going];
  let bytes = 0;
  for (let first = 0; first < ids.length; first += SUMMED_AT_ONCE) {
    const some = ids.slice(first, first + SUMMED_AT_ONCE);
    bytes += await findBytes(store.reader, scope, tableOf(kind), some);
  }
  return { rows: ids.length, bytes };
}

/** Takes out what is held by something that stays, and so on. */
function keepHeld(going: Set<string>, holders: readonly Holder[]): void {
  for (let before = -1; before !== going.size; ) {
    before = going.size;
    for (const { id, holderId } of holders) if (!going.has(holderId)) going.delete(id);
  }
}

/** Returns how much is kept where no policy says it, by the settings. */
export function retentionOfSettings(settings: RetentionSettings): Retention {
  return {
    executions: { days: settings.executionRetention, count: settings.executionCount },
    agentExecutions: { days: settings.agentExecutionRetention, count: settings.agentExecutionCount },
    triggerEntries: { days: settings.triggerEntryRetention, count: settings.triggerEntryCount },
    events: { days: settings.eventRetention, count: settings.eventCount },
  };
}

/** The settings of retention; days and numbers, 0 for no bound. */
export interface RetentionSettings {
  readonly executionRetention: number;
  readonly executionCount: number;
  readonly agentExecutionRetention: number;
  readonly agentExecutionCount: number;
  readonly triggerEntryRetention: number;
  readonly triggerEntryCount: number;
  readonly eventRetention: number;
  readonly eventCount: number;
}

/** Removes what is kept no longer. */
export const retentionJob: JobFactory = ({ store, now, log, settings, draining }) => ({
  name: "retention",
  everyMs: EVERY_MS,
  run: () =>
    applyRetention(
      store,
      retentionOfSettings(settings),
      now(),
      ({ organizationId, kind, rows }) =>
        log.info({ organizationId, kind, rows }, "removed what is kept no longer"),
      draining,
    ),
});
