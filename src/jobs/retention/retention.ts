import { type RetainedKind, type Retention, retentionOf } from "../../domain/policy/retention.ts";
import { countRemovable, type RemovableAmount } from "../../services/access/retention/removable-amounts.ts";
import { findRetainingOrganizations } from "../../store/policy/organization-policies.ts";
import type { Store } from "../../store/store.ts";
import type { JobFactory } from "../job.ts";
import { pruneEvents } from "./event-pruning.ts";
import { removePastExecutions } from "./execution-removal.ts";
import { pruneEventDeliveries, pruneTriggerEntries } from "./ledger-pruning.ts";

const EVERY_MS = 3_600_000;

/** The removals of one kind in one organization. */
export interface Removal extends Pick<RemovableAmount, "rows" | "bytes"> {
  readonly organizationId: string;
  /** Name of the organization. */
  readonly name: string;
  readonly kind: RetainedKind;
}

/**
 * Removes the data that organizations no longer keep.
 *
 * @param defaults retention of organizations whose policy does not set it
 * @param now milliseconds since 1970 UTC
 * @param onRemoved called for each organization and kind of which anything was removed
 * @param draining ends the run between two writes; the next run continues
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
      ["triggerEntries", () => pruneEventDeliveries(store, scope, keep.triggerEntries, now, draining)],
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
export async function previewRetentionAsOperator(
  store: Store,
  defaults: Retention,
  now: number,
): Promise<Removal[]> {
  const removals: Removal[] = [];
  for (const { organizationId, name, policies } of await findRetainingOrganizations(store.reader)) {
    const retention = retentionOf(policies.retention, defaults);
    for (const kind of ["executions", "agentExecutions", "triggerEntries", "events"] as const) {
      const query = { keep: retention[kind], now, most: Number.POSITIVE_INFINITY };
      const { rows, bytes } = await countRemovable(store, { organizationId }, kind, query);
      if (rows > 0) removals.push({ organizationId, name, kind, rows, bytes });
    }
  }
  return removals;
}

/** Returns the retention from the settings, for organizations whose policy does not set it. */
export function retentionOfSettings(settings: RetentionSettings): Retention {
  return {
    executions: { days: settings.executionRetention, count: settings.executionCount },
    agentExecutions: { days: settings.agentExecutionRetention, count: settings.agentExecutionCount },
    triggerEntries: { days: settings.triggerEntryRetention, count: settings.triggerEntryCount },
    events: { days: settings.eventRetention, count: settings.eventCount },
  };
}

/** The settings of retention, in days and numbers; 0 for no limit. */
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

/** Removes data that is no longer kept. */
export const retentionJob: JobFactory = ({ store, now, log, settings, draining }) => ({
  name: "retention",
  everyMs: EVERY_MS,
  run: () =>
    applyRetention(
      store,
      retentionOfSettings(settings),
      now(),
      ({ organizationId, kind, rows }) =>
        log.info({ organizationId, kind, rows }, "removed what is past its retention"),
      draining,
    ),
});
