import type { AuditAnchor } from "../../domain/audit-anchor.ts";
import { headOfAnchor } from "../../domain/record/audit-anchor.ts";
import { type AuditTarget, type NamedHead, namedHead } from "../../domain/record/audit-export.ts";
import {
  type AuditPosition,
  type AuditSealing,
  isSealedPosition,
  sealPosition,
} from "../../domain/record/audit-position.ts";
import type { AuditMac, ChainHead, StoredAuditRow } from "../../domain/record/audit-verification.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, WriteTransaction } from "../store.ts";
import { findAnchors } from "./audit-ageing.ts";
import { diffOfTampered } from "./packed-diff.ts";

/** A chain with rows that a target has not confirmed, and the head that it has confirmed. */
export interface LaggingChain {
  /** Null for the chain of the installation. */
  readonly chain: string | null;
  readonly confirmed: ChainHead;
  /** Start of the chain, when rows were removed before the target had received any of them. */
  readonly anchor?: AuditAnchor;
}

const NOTHING: ChainHead = { sequence: 0, chain_hash: null };

/**
 * Returns chains with rows that a target has not confirmed: the installation's first, and up to `limit` of organizations.
 * A position that the server has not sealed counts as none. They cover the installation, so it takes no scope.
 */
export async function findLaggingChains(
  db: Reader,
  mac: AuditMac,
  target: AuditTarget,
  limit: number,
): Promise<LaggingChain[]> {
  const organizations = await builderOf(db)
    .selectFrom("organization")
    .leftJoin("audit_anchor", "audit_anchor.organization_id", "organization.id")
    .leftJoin("audit_export", (join) =>
      join
        .onRef("audit_export.organization_id", "=", "organization.id")
        .on("audit_export.target", "=", target),
    )
    .select(["organization.id", "audit_anchor.sequence as gone"])
    // A position past the end was not sealed by the server, and would exclude the chain from exports.
    .where((eb) => eb("organization.sequence", "<>", eb.fn.coalesce("audit_export.sequence", eb.lit(0))))
    .orderBy("organization.id")
    .limit(limit)
    .execute();
  const ids = ["", ...organizations.map(({ id }) => id)];
  const stored = await findPositions(db, [target], ids);
  const positions = new Map(stored.map((each) => [each.chain, sealedHead(each, mac)]));
  const confirmedOf = (chain: string | null) => positions.get(chain) ?? NOTHING;
  const isGone = ({ id, gone }: (typeof organizations)[number]) => (gone ?? 0) > confirmedOf(id).sequence;
  const anchors = organizations.some(isGone) ? await findAnchors(db) : new Map<string, AuditAnchor>();
  const behind = organizations.map((each): LaggingChain => {
    const anchor = isGone(each) ? anchors.get(each.id) : undefined;
    if (anchor) return { chain: each.id, confirmed: headOfAnchor(anchor), anchor };
    return { chain: each.id, confirmed: confirmedOf(each.id) };
  });
  const [installation] = await builderOf(db).selectFrom("installation").select("sequence").execute();
  const confirmed = confirmedOf(null);
  return (installation?.sequence ?? 0) > confirmed.sequence
    ? [{ chain: null, confirmed }, ...behind]
    : behind;
}

const sealedHead = (position: AuditPosition, mac: AuditMac): ChainHead =>
  isSealedPosition(position, mac)
    ? { sequence: position.sequence, chain_hash: position.chain_hash }
    : NOTHING;

/**
 * Returns the positions of targets as stored, sealed or not, by chain. They cover the installation, so it takes no
 * scope.
 * @param ids of organizations, empty for the chain of the installation; all chains by default
 */
export async function findPositions(
  db: Reader,
  targets: readonly AuditTarget[],
  ids?: readonly string[],
): Promise<AuditPosition[]> {
  if (targets.length === 0) return [];
  let query = builderOf(db)
    .selectFrom("audit_export")
    .selectAll()
    .where("target", "in", targets)
    .orderBy("organization_id");
  if (ids) query = query.where("organization_id", "in", ids);
  const rows = await query.execute();
  return rows.map(({ organization_id, target, ...row }) => ({
    ...row,
    target: target as AuditTarget,
    chain: organization_id || null,
  }));
}

/** Returns what a target has confirmed of all chains. It covers the installation, so it takes no scope. */
export async function findConfirmed(db: Reader, mac: AuditMac, target: AuditTarget): Promise<NamedHead[]> {
  const positions = (await findPositions(db, [target])).filter((each) => isSealedPosition(each, mac));
  return positions.map((position) => namedHead(position.chain, position));
}

/** Returns up to `limit` rows of a chain after a number. It covers the installation, so it takes no scope. */
export async function findRowsAfter(
  db: Reader,
  chain: string | null,
  after: number,
  limit: number,
): Promise<StoredAuditRow[]> {
  const rows = await builderOf(db)
    .selectFrom("audit_log")
    .selectAll()
    .where("organization_id", chain === null ? "is" : "=", chain)
    .where("sequence", ">", after)
    .orderBy("sequence")
    .limit(limit)
    .execute();
  return rows.map((row) => ({ ...row, diff: diffOfTampered(row) }));
}

/** Stores what a target has confirmed. It is bookkeeping: positions belong to no organization, and leave no record. */
export async function setConfirmed(
  { db }: WriteTransaction,
  sealing: AuditSealing,
  target: AuditTarget,
  heads: ReadonlyMap<string | null, ChainHead>,
): Promise<void> {
  const rows = [...heads].map(([chain, { sequence, chain_hash }]) => {
    const { key_id, hash } = sealPosition({ target, chain, sequence, chain_hash }, sealing);
    return { target, organization_id: chain ?? "", sequence, chain_hash, key_id, hash };
  });
  await builderOf(db)
    .insertInto("audit_export")
    .values(rows)
    .onConflict((conflict) =>
      conflict.columns(["target", "organization_id"]).doUpdateSet((eb) => ({
        sequence: eb.ref("excluded.sequence"),
        chain_hash: eb.ref("excluded.chain_hash"),
        key_id: eb.ref("excluded.key_id"),
        hash: eb.ref("excluded.hash"),
      })),
    )
    .execute();
}
