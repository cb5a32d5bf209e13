/** A target that has left a row unconfirmed for longer than this counts as behind. */
const BEHIND_MS = 300_000;

/** Rows that a target of the export of the audit trail has not confirmed. */
export interface Unconfirmed {
  readonly target: string;
  /** When the oldest row was written, in milliseconds since 1970 UTC; undefined without any. */
  readonly oldestAt: number | undefined;
}

/**
 * Returns a sentence that says why a target is behind; undefined while it is not. Everybody may read it at /readyz, so
 * it does not reveal the number of rows.
 */
export function auditDelay({ target, oldestAt }: Unconfirmed, now: number): string | undefined {
  if (oldestAt === undefined || now - oldestAt <= BEHIND_MS) return undefined;
  const minutes = Math.floor((now - oldestAt) / 60_000);
  return `the target ${target} of the audit export has left a row unconfirmed for ${minutes} minutes`;
}
