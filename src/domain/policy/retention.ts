import type { RetentionPolicy } from "#gen/service/v1/organization_pb.js";
import { phaseUnsuitable } from "../error.ts";
import type { Keep, RetainedKind, Retention } from "../retention-bounds.ts";

export type { Keep, RetainedKind, Retention } from "../retention-bounds.ts";

/** Returns the retention limits of an organization: for each kind those of its policy, or else those of the settings. */
export function retentionOf(policy: RetentionPolicy | undefined, defaults: Retention): Retention {
  return {
    executions: policy?.executions ?? defaults.executions,
    agentExecutions: policy?.agentExecutions ?? defaults.agentExecutions,
    triggerEntries: policy?.triggerEntries ?? defaults.triggerEntries,
    events: policy?.events ?? defaults.events,
  };
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/**
 * Minimum time after its end before a row may be removed because of a count limit, so that waiting clients can still
 * read it. Trigger entries are kept for as long as senders repeat deliveries: without the entry, a repeated delivery
 * would start the work again.
 */
const COUNT_GRACE_MS: Readonly<Record<RetainedKind, number>> = {
  executions: HOUR_MS,
  agentExecutions: HOUR_MS,
  triggerEntries: DAY_MS,
  events: HOUR_MS,
};

/** Returns the time before which ended rows have exceeded the maximum age of their kind; undefined for no limit. */
export function pastDays({ days }: Keep, now: number): number | undefined {
  return days === 0 ? undefined : now - days * DAY_MS;
}

/** Returns the time before which ended rows may be removed because of a count limit. */
export function pastGrace(kind: RetainedKind, now: number): number {
  return now - COUNT_GRACE_MS[kind];
}

/**
 * Requires that every server knows the policy; servers of the previous release would lose it.
 * @throws DomainError PHASE_UNSUITABLE
 */
export function requireRetentionKnown(isKnown: boolean): void {
  if (isKnown) return;
  throw phaseUnsuitable(
    "installation",
    "UPGRADING",
    "retention can be set once every server runs this release",
  );
}
