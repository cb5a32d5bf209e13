import type { AuditAnchor } from "../audit-anchor.ts";
import type { JsonObject } from "../diff.ts";
import type { ChainBreak, ChainHead, StoredAuditRow } from "./audit-verification.ts";

/** Minimum age in days before an audit row may be removed, regardless of settings. Database triggers enforce it too. */
export const AUDIT_FLOOR_DAYS = 90;

/** Number of newest rows of a chain that are never removed, however old. Database triggers enforce it too. */
export const AUDIT_FLOOR_ROWS = 1_000;

/** Minimum number of rows per removal: each removal adds a row itself, so smaller ones would gain little. */
export const AUDIT_MIN_REMOVED_ROWS = 100;

const DAY_MS = 24 * 3_600_000;

/** Returns the time before which rows may be removed; undefined for never. @param days 0 to keep rows forever */
export function auditBound(days: number, now: number): number | undefined {
  return days === 0 ? undefined : now - Math.max(days, AUDIT_FLOOR_DAYS) * DAY_MS;
}

/**
 * Returns the number of the last row that may be removed, whatever its age: one that every export target has confirmed,
 * and that is not among the newest {@link AUDIT_FLOOR_ROWS}. Returns 0 for none.
 * @param confirmed number of the last row that each target has confirmed; without targets nothing is removed
 */
export function lastRemovable(head: number, confirmed: readonly number[]): number {
  return confirmed.length === 0 ? 0 : Math.max(0, Math.min(head - AUDIT_FLOOR_ROWS, ...confirmed));
}

/**
 * Finds the last row that is old enough by binary search; rows ascend by time.
 * @param after number of a row that was removed, or that is known to be old enough
 * @param isOld called with numbers of rows greater than `after`, up to `last`
 */
export async function findLastOld(
  after: number,
  last: number,
  isOld: (sequence: number) => Promise<boolean>,
): Promise<number> {
  let [low, high] = [after, Math.max(after, last)];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (await isOld(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Returns the body of the entry that records a removal: the last removed row, with its hash. */
export function removalBody({ sequence, chain_hash }: ChainHead): JsonObject {
  const hash = chain_hash === null ? null : Buffer.from(chain_hash).toString("hex");
  return { removedTrail: { sequence, hash } };
}

/** Returns the last removed row if a row of an organization's chain records a removal; undefined otherwise. */
export function parseRemoval(row: StoredAuditRow): ChainHead | undefined {
  if (row.organization_id === null || row.subject_type !== "organization") return undefined;
  const diff = JSON.parse(row.diff) as {
    removedTrail?: [unknown, { sequence: number; hash: string | null }];
  };
  const removed = diff.removedTrail?.[1];
  if (!removed) return undefined;
  return {
    sequence: removed.sequence,
    chain_hash: removed.hash === null ? null : Buffer.from(removed.hash, "hex"),
  };
}

/**
 * Returns the problem of a chain that does not record the removal of the rows up to its anchor; undefined for none.
 * @param recorded the last removed row by the chain's newest entry about a removal, if any
 */
export function recordProblem(anchor: AuditAnchor, recorded: ChainHead | undefined): ChainBreak | undefined {
  const { sequence, chain_hash } = anchor;
  if (sequence === 0) return undefined;
  if (!recorded || recorded.sequence < sequence)
    return { sequence, problem: "no entry of the chain records the removal of the rows up to its anchor" };
  if (
    recorded.sequence === sequence &&
    Buffer.compare(recorded.chain_hash ?? EMPTY, chain_hash ?? EMPTY) !== 0
  )
    return { sequence, problem: "its anchor has another hash than the entry that records the removal" };
  return undefined;
}

const EMPTY = new Uint8Array();
