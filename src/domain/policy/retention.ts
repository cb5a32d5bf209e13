import type { RetentionPolicy } from "#gen/service/v1/organization_pb.js";
import { phaseUnsuitable } from "../error.ts";
import type { Keep, RetainedKind, Retention } from "../retention-bounds.ts";

export type { Keep, RetainedKind, Retention } from "../retention-bounds.ts";

/** Returns how much an organization keeps: of each kind what its policy says, else what the settings say. */
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
 * The time for which a count leaves alone what has just ended, so that those who wait for it read it. Entries of ledgers stay as
 * long as senders repeat their deliveries, which would start the work again without them.
 */
const COUNT_SPARES_MS: Readonly<Record<RetainedKind, number>> = {
  executions: HOUR_MS,
  agentExecutions: HOUR_MS,
  triggerEntries: DAY_MS,
  events: HOUR_MS,
};

/** Returns the time before which what has ended is past the days of its kind; undefined for no bound. */
export function pastDays({ days }: Keep, now: number): number | undefined {
  return days === 0 ? undefined : now - days * DAY_MS;
}

/** Returns the time before which a count may remove what has ended. */
export function pastGrace(kind: RetainedKind, now: number): number {
  return now - COUNT_SPARES_MS[kind];
}

/** Requires that the policy may be stored: servers of the release before would lose it. @throws DomainError PHASE_UNSUITABLE */
export function requireRetentionKnown(isKnown: boolean): void {
  if (isKnown) return;
  throw phaseUnsuitable(
    "installation",
    "UPGRADING",
    "retention can be set once every server runs this release",
  );
}
