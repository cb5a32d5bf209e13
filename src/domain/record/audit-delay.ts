/** A target that has left a row unconfirmed for longer is behind: a reader of the trail sees what is minutes old. */
const BEHIND_MS = 300_000;

/** What a target of the export of the audit trail has not confirmed. */
export interface Unconfirmed {
  readonly target: string;
  readonly rows: number;
  /** When the oldest row was written, in milliseconds since 1970 UTC; undefined without any. */
  readonly oldestAt: number | undefined;
}

/** Returns why a target is behind, in a sentence; undefined while it is not. */
export function auditDelay({ target, rows, oldestAt }: Unconfirmed, now: number): string | undefined {
  if (oldestAt === undefined || now - oldestAt <= BEHIND_MS) return undefined;
  const minutes = Math.floor((now - oldestAt) / 60_000);
  return `the target ${target} of the audit export has not confirmed ${rows === 1 ? "one row" : `${rows} rows`}, the oldest for ${minutes} minutes`;
}
