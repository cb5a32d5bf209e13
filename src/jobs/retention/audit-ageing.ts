import type { AuditAnchor } from "../../domain/audit-anchor.ts";
import {
  AUDIT_MIN_REMOVED_ROWS,
  auditBound,
  findLastOld,
  lastRemovable,
} from "../../domain/record/audit-ageing.ts";
import { AUDIT_AGEING, anchorProblem, headOfAnchor } from "../../domain/record/audit-anchor.ts";
import type { AuditTarget } from "../../domain/record/audit-export.ts";
import { isSealedPosition } from "../../domain/record/audit-position.ts";
import {
  type AuditMac,
  type ChainHead,
  createChainVerifier,
} from "../../domain/record/audit-verification.ts";
import { auditMacOf } from "../../keys.ts";
import {
  type AgeingChain,
  findAgeingChains,
  findAnchor,
  findAuditBytes,
  findRowFacts,
  recordRemoval,
  removeUpTo,
} from "../../store/record/audit-ageing.ts";
import { findRowsAfter } from "../../store/record/audit-export.ts";
import { type Store, type WriteTransaction, within } from "../../store/store.ts";
import type { JobFactory } from "../job.ts";
import { writeThenPause } from "../job-writes.ts";
import { BatchSize } from "./batch-size.ts";

const EVERY_MS = 3_600_000;

/** Maximum number of rows removed per transaction, which other writes wait for. */
const ROWS_PER_BATCH = 200;

/** Number of rows whose bytes are summed at a time. */
const SUMMED_AT_ONCE = 1_000;

/** Retention of the audit trail, and the export targets that must have confirmed rows before their removal. */
export interface AuditKeep {
  /** 0 for unlimited. */
  readonly days: number;
  readonly targets: readonly AuditTarget[];
}

/** The rows of an organization's chain that are removed, or would be. */
export interface AgedRows {
  readonly organizationId: string;
  /** Name of the organization. */
  readonly name: string;
  readonly rows: number;
  readonly bytes: number;
}

const sequenceOf = ({ anchor }: AgeingChain) => anchor?.sequence ?? 0;

/**
 * Removes the oldest rows of the chains of organizations, as the settings define: those that every target has
 * confirmed. The chain of the installation is kept. The removal is recorded first; if the process is killed in
 * between, the next run continues from that record.
 *
 * @param mac verifies rows before their removal, since faults could not be detected afterwards
 * @param now milliseconds since 1970 UTC
 * @param onRemoved called for each organization of which anything was removed
 * @param draining ends the run between two writes
 * @throws AggregateError of the failures, after all other organizations are done
 */
export async function ageAudit(
  store: Store,
  mac: AuditMac,
  { days, targets }: AuditKeep,
  now: number,
  onRemoved: (rows: Omit<AgedRows, "bytes">) => void = () => {},
  draining?: AbortSignal,
): Promise<void> {
  const before = auditBound(days, now);
  if (before === undefined || targets.length === 0) return;
  const failures: unknown[] = [];
  for (const chain of await findAgeingChains(store.reader, targets)) {
    if (draining?.aborted) break;
    const { organizationId, name } = chain;
    try {
      const rows = await ageChain(store, mac, chain, before, draining);
      if (rows > 0) onRemoved({ organizationId, name, rows });
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, "the audit trail of some organizations stays");
}

/** Returns what {@link ageAudit} would remove now, without removing it. */
export async function previewAgeing(
  store: Store,
  { days, targets }: AuditKeep,
  now: number,
): Promise<AgedRows[]> {
  const before = auditBound(days, now);
  if (before === undefined || targets.length === 0) return [];
  const found: AgedRows[] = [];
  for (const chain of await findAgeingChains(store.reader, targets)) {
    const { organizationId, name } = chain;
    const last = await findEnd(store, chain, before);
    let bytes = 0;
    for (let after = sequenceOf(chain); after < last; after += SUMMED_AT_ONCE)
      bytes += await findAuditBytes(store.reader, chain, after, Math.min(after + SUMMED_AT_ONCE, last));
    const rows = last - sequenceOf(chain);
    if (rows > 0) found.push({ organizationId, name, rows, bytes });
  }
  return found;
}

/** Returns the number of the last row to remove: that of the recorded removal, or else of the last row old enough. */
async function findEnd(store: Store, chain: AgeingChain, before: number): Promise<number> {
  const { anchor, head, confirmed } = chain;
  const first = sequenceOf(chain);
  const removable = lastRemovable(
    head,
    confirmed.map((position) => position?.sequence ?? 0),
  );
  const isOld = async (sequence: number) => {
    const row = await findRowFacts(store.reader, chain, sequence);
    if (!row) throw new Error(`row ${sequence} of the audit trail of ${chain.organizationId} is missing`);
    return row.at < before;
  };
  const recorded = anchor && anchor.until_sequence > first ? anchor.until_sequence : undefined;
  const last = await findLastOld(first, Math.min(removable, recorded ?? removable), isOld);
  return recorded === undefined && last - first < AUDIT_MIN_REMOVED_ROWS ? first : last;
}

/** @returns the number of rows removed */
async function ageChain(
  store: Store,
  mac: AuditMac,
  chain: AgeingChain,
  before: number,
  draining: AbortSignal | undefined,
): Promise<number> {
  const first = sequenceOf(chain);
  let anchor = chain.anchor;
  const last = await unlessMoved(store, chain, anchor, () => findEnd(store, chain, before));
  if (last === undefined || last <= first) return 0;
  requireSealed(mac, chain);
  const isConfirmed = async () => {
    await requireConfirmed(store, mac, chain);
    return true;
  };
  if (!(await unlessMoved(store, chain, anchor, isConfirmed))) return 0;
  if (!anchor || anchor.until_sequence <= first) {
    const row = await findRowFacts(store.reader, chain, last);
    if (!row) return 0;
    const record = (tx: WriteTransaction) =>
      recordRemoval(tx, chain, chain.anchor, { sequence: last, chain_hash: row.hash });
    anchor = await writeThenPause(store, AUDIT_AGEING, record, within(chain));
  }
  const size = new BatchSize();
  while (anchor && anchor.sequence < last && !draining?.aborted) {
    const most = Math.min(size.of(ROWS_PER_BATCH), last - anchor.sequence);
    const present: AuditAnchor = anchor;
    const end = await unlessMoved(store, chain, anchor, () => verifiedEnd(store, mac, present, most, before));
    if (!end) break;
    const remove = (tx: WriteTransaction) => size.measure(() => removeUpTo(tx, chain, present, end));
    const moved = await writeThenPause(store, AUDIT_AGEING, remove, within(chain));
    if (!moved) break;
    anchor = moved;
  }
  return (anchor?.sequence ?? first) - first;
}

/**
 * Reads rows of a chain after its anchor. An earlier or later leader may remove some of them meanwhile; rows that are
 * missing for this reason are not an error.
 *
 * @returns undefined when the read failed and the anchor has changed
 */
async function unlessMoved<T>(
  { reader }: Store,
  chain: AgeingChain,
  anchor: AuditAnchor | undefined,
  read: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    const present = await findAnchor(reader, chain);
    if ((present?.sequence ?? 0) === (anchor?.sequence ?? 0)) throw error;
    return undefined;
  }
}

/**
 * Returns the end of the next rows that may be removed; undefined if there are none. @throws Error where the chain
 * breaks
 */
async function verifiedEnd(
  store: Store,
  mac: AuditMac,
  anchor: AuditAnchor,
  most: number,
  before: number,
): Promise<ChainHead | undefined> {
  const id = anchor.organization_id;
  const verifier = createChainVerifier(id, mac, headOfAnchor(anchor));
  let end: ChainHead | undefined;
  for (const row of await findRowsAfter(store.reader, id, anchor.sequence, most)) {
    // The clock may have been set back to before a row's time.
    if (row.at >= before) break;
    if (!verifier.add(row)) {
      const { broken } = verifier.end(undefined);
      throw new Error(`the audit trail of ${id} breaks at row ${broken?.sequence}: ${broken?.problem}`);
    }
    end = { sequence: row.sequence, chain_hash: row.hash };
  }
  return end;
}

/** Requires that the server sealed the anchor: a forged one would be sealed with the next rows. @throws Error */
function requireSealed(mac: AuditMac, { anchor, organizationId }: AgeingChain): void {
  const broken = anchor && anchorProblem(anchor, mac);
  if (broken)
    throw new Error(
      `the audit trail of ${organizationId} breaks at row ${broken.sequence}: ${broken.problem}`,
    );
}

/** Requires that the server sealed the confirmation, and that it names a row of this chain. @throws Error */
async function requireConfirmed(store: Store, mac: AuditMac, chain: AgeingChain): Promise<void> {
  for (const position of chain.confirmed) {
    if (!position || position.sequence <= sequenceOf(chain)) continue;
    const { sequence, chain_hash, target } = position;
    if (!isSealedPosition(position, mac))
      throw new Error(
        `that the target ${target} has confirmed ${chain.organizationId} up to row ${sequence} is not sealed by a key of the server`,
      );
    const row = await findRowFacts(store.reader, chain, sequence);
    if (!row || Buffer.compare(row.hash ?? EMPTY, chain_hash ?? EMPTY) !== 0)
      throw new Error(`what was exported of ${chain.organizationId} is not its row ${sequence}`);
  }
}

const EMPTY = new Uint8Array();

/** Removes the oldest rows of the audit trail, if the settings say so. */
export const auditAgeingJob: JobFactory = ({ store, keys, auditSinks, now, log, settings, draining }) => ({
  name: "audit-retention",
  everyMs: EVERY_MS,
  run: () =>
    ageAudit(
      store,
      auditMacOf(keys),
      { days: settings.auditRetention, targets: auditSinks.map(({ target }) => target) },
      now(),
      ({ organizationId, rows }) =>
        log.info({ organizationId, kind: "auditRows", rows }, "removed what is past its retention"),
      draining,
    ),
});
