/** A target that has left a row unconfirmed for longer is behind: a reader of the trail sees what is minutes old. */
const BEHIND_MS = 300_000;

/** Rows that a target of the export of the audit trail has not confirmed. */
export interface Unconfirmed {
  readonly target: string;
  /** When the oldest row was written, in milliseconds since 1970 UTC; undefined without any. */
  readonly oldestAt: number | undefined;
}

/**
 * Returns why a target is behind, in a sentence; undefined while it is not. Everybody may read it at /readyz, so it does
 * not tell how much there is.
 */
export function auditDelay({ target, oldestAt }: Unconfirmed, now: number): string | undefined {
  if (oldestAt === undefined || now - oldestAt <= BEHIND_MS) return undefined;
  const minutes = Math.floor((now - oldestAt) / 60_000);
  return `the target ${target} of the audit export has left a row unconfirmed for ${minutes} minutes`;
}
