import type { AuditAnchor } from "../../domain/audit-anchor.ts";
import { headOfAnchor } from "../../domain/record/audit-anchor.ts";
import { type AuditTarget, type NamedHead, namedHead } from "../../domain/record/audit-export.ts";
import type { ChainHead, StoredAuditRow } from "../../domain/record/audit-verification.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, WriteTransaction } from "../store.ts";
import { findAnchors } from "./audit-ageing.ts";
import { diffOfTampered } from "./packed-diff.ts";

/** A chain with rows that a target has not confirmed, and the head that it has confirmed. */
export interface ChainBehind {
  /** Null for the chain of the installation. */
  readonly chain: string | null;
  readonly confirmed: ChainHead;
  /** Where the chain begins, when older rows than the next went before the target had any of them. */
  readonly anchor?: AuditAnchor;
}

const NOTHING: ChainHead = { sequence: 0, chain_hash: null };

/**
 * Returns chains with rows that a target has not confirmed: the installation's first, and up to `limit` of organizations.
 * They cover the installation, so it takes no scope.
 */
export async function findChainsBehind(
  db: Reader,
  target: AuditTarget,
  limit: number,
): Promise<ChainBehind[]> {
  const organizations = await builderOf(db)
    .selectFrom("organization")
    .leftJoin("audit_anchor", "audit_anchor.organization_id", "organization.id")
    .leftJoin("audit_export", (join) =>
      join
        .onRef("audit_export.organization_id", "=", "organization.id")
        .on("audit_export.target", "=", target),
    )
    .select(["organization.id", "audit_export.sequence", "audit_export.chain_hash"])
    .select("audit_anchor.sequence as gone")
    .where((eb) => eb("organization.sequence", ">", eb.fn.coalesce("audit_export.sequence", eb.lit(0))))
    .orderBy("organization.id")
    .limit(limit)
    .execute();
  const anchors = organizations.some(({ sequence, gone }) => (gone ?? 0) > (sequence ?? 0))
    ? await findAnchors(db)
    : new Map<string, AuditAnchor>();
  const behind = organizations.map(({ id, sequence, chain_hash, gone }): ChainBehind => {
    const anchor = (gone ?? 0) > (sequence ?? 0) ? anchors.get(id) : undefined;
    if (anchor) return { chain: id, confirmed: headOfAnchor(anchor), anchor };
    return { chain: id, confirmed: sequence === null ? NOTHING : { sequence, chain_hash } };
  });
  const [installation] = await builderOf(db).selectFrom("installation").select("sequence").execute();
  const [position] = await positionsOf(db, target).where("organization_id", "=", "").execute();
  const confirmed = position ?? NOTHING;
  return (installation?.sequence ?? 0) > confirmed.sequence
    ? [
        { chain: null, confirmed: { sequence: confirmed.sequence, chain_hash: confirmed.chain_hash } },
        ...behind,
      ]
    : behind;
}

const positionsOf = (db: Reader, target: AuditTarget) =>
  builderOf(db)
    .selectFrom("audit_export")
    .select(["organization_id", "sequence", "chain_hash"])
    .where("target", "=", target);

/** Returns what a target has confirmed of all chains. It covers the installation, so it takes no scope. */
export async function findConfirmed(db: Reader, target: AuditTarget): Promise<NamedHead[]> {
  const positions = await positionsOf(db, target).orderBy("organization_id").execute();
  return positions.map(({ organization_id, ...head }) => namedHead(organization_id || null, head));
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

/** Stores what a target has confirmed. It is bookkeeping: positions are of no organization, and leave no record. */
export async function setConfirmed(
  { db }: WriteTransaction,
  target: AuditTarget,
  heads: ReadonlyMap<string | null, ChainHead>,
): Promise<void> {
  const rows = [...heads].map(([chain, head]) => ({ target, organization_id: chain ?? "", ...head }));
  await builderOf(db)
    .insertInto("audit_export")
    .values(rows)
    .onConflict((conflict) =>
      conflict.columns(["target", "organization_id"]).doUpdateSet((eb) => ({
        sequence: eb.ref("excluded.sequence"),
        chain_hash: eb.ref("excluded.chain_hash"),
      })),
    )
    .execute();
}
