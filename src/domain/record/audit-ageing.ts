import type { AuditAnchor } from "../audit-anchor.ts";
import type { JsonObject } from "../diff.ts";
import type { ChainBreak, ChainHead, StoredAuditRow } from "./audit-verification.ts";

/** Days for which no row of the trail goes, whatever the settings say. The database's triggers say it too. */
export const AUDIT_FLOOR_DAYS = 90;

/** Number of the newest rows of a chain of which none goes, however old. The database's triggers say it too. */
export const AUDIT_FLOOR_ROWS = 1_000;

/** Number of rows that go at least: each removal is a row too, and takes the place of none that says more. */
export const AUDIT_LEAST_ROWS = 100;

const DAY_MS = 24 * 3_600_000;

/** Returns the time before which rows may go; undefined where they are kept for good. @param days 0 for good */
export function auditBound(days: number, now: number): number | undefined {
  return days === 0 ? undefined : now - Math.max(days, AUDIT_FLOOR_DAYS) * DAY_MS;
}

/**
 * Returns the number of the last row that may go by its place: not past what any target has confirmed, nor of the newest.
 * @param confirmed of each target; without a target nothing goes
 */
export function lastRemovable(head: number, confirmed: readonly number[]): number {
  return confirmed.length === 0 ? 0 : Math.max(0, Math.min(head - AUDIT_FLOOR_ROWS, ...confirmed));
}

/**
 * Finds the last row that is old enough, by halves, as rows ascend by time.
 * @param after number of a row that is gone, or that is known to go
 * @param isOld called with the numbers of rows after that, up to `last`
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

/** Returns the body of the entry that records a removal: the last row that goes, with its hash. */
export function removalBody({ sequence, chain_hash }: ChainHead): JsonObject {
  const hash = chain_hash === null ? null : Buffer.from(chain_hash).toString("hex");
  return { removedTrail: { sequence, hash } };
}

/** Returns the last row that goes by what a row of an organization's chain records; undefined for another row. */
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

/** Returns why a chain does not record that the rows before its anchor went. @param recorded by its newest entry, if any */
export function recordProblem(anchor: AuditAnchor, recorded: ChainHead | undefined): ChainBreak | undefined {
  const { sequence, chain_hash } = anchor;
  if (sequence === 0) return undefined;
  if (!recorded || recorded.sequence < sequence)
    return { sequence, problem: "no entry of the chain records that the rows up to its anchor went" };
  if (
    recorded.sequence === sequence &&
    Buffer.compare(recorded.chain_hash ?? EMPTY, chain_hash ?? EMPTY) !== 0
  )
    return { sequence, problem: "its anchor has another hash than the entry that records the removal" };
  return undefined;
}

const EMPTY = new Uint8Array();
