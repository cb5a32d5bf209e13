import { sql } from "kysely";
import type { AnchorFacts, AuditAnchor } from "../../domain/audit-anchor.ts";
import { removalBody } from "../../domain/record/audit-ageing.ts";
import { AUDIT_AGEING, anchorBytes } from "../../domain/record/audit-anchor.ts";
import type { AuditTarget } from "../../domain/record/audit-export.ts";
import type { AuditPosition } from "../../domain/record/audit-position.ts";
import type { ChainHead } from "../../domain/record/audit-verification.ts";
import { builderOf } from "../query-builder.ts";
import { type Actor, type Reader, type Scope, SYSTEM, type WriteTransaction } from "../store.ts";
import { findPositions } from "./audit-export.ts";
import type { AuditSeal } from "./record.ts";

/** An organization's chain, with the values that determine how many of its rows may be removed. */
export interface AgeingChain {
  readonly organizationId: string;
  /** Name of the organization. */
  readonly name: string;
  /** Number of its newest row. */
  readonly head: number;
  readonly anchor: AuditAnchor | undefined;
  /** Position that each target has confirmed, as stored; undefined for none. */
  readonly confirmed: readonly (AuditPosition | undefined)[];
}

/** Returns the chain of each organization, by its id. They cover the installation, so it takes no scope. */
export async function findAgeingChains(db: Reader, targets: readonly AuditTarget[]): Promise<AgeingChain[]> {
  const organizations = await builderOf(db)
    .selectFrom("organization")
    .select(["id", "name", "sequence"])
    .orderBy("id")
    .execute();
  const anchors = await findAnchors(db);
  const positions = await findPositions(db, targets);
  const confirmed = new Map(positions.map((each) => [`${each.target} ${each.chain}`, each]));
  return organizations.map(({ id, name, sequence }) => ({
    organizationId: id,
    name,
    head: sequence,
    anchor: anchors.get(id),
    confirmed: targets.map((target) => confirmed.get(`${target} ${id}`)),
  }));
}

/** Returns the anchors of all chains. They cover the installation, so it takes no scope. */
export async function findAnchors(db: Reader): Promise<Map<string, AuditAnchor>> {
  const rows = await builderOf(db)
    .selectFrom("audit_anchor")
    .selectAll()
    .orderBy("organization_id")
    .execute();
  return new Map(rows.map((row) => [row.organization_id, row]));
}

/** Returns the anchor of a chain; undefined if none of its rows was removed. */
export async function findAnchor(db: Reader, { organizationId }: Scope): Promise<AuditAnchor | undefined> {
  return builderOf(db)
    .selectFrom("audit_anchor")
    .selectAll()
    .where("organization_id", "=", organizationId)
    .executeTakeFirst();
}

/** Returns the time and the hash of a row of a chain; undefined if it does not exist. */
export async function findRowFacts(
  db: Reader,
  { organizationId }: Scope,
  sequence: number,
): Promise<{ readonly at: number; readonly hash: Uint8Array | null } | undefined> {
  return builderOf(db)
    .selectFrom("audit_log")
    .select(["at", "hash"])
    .where("organization_id", "=", organizationId)
    .where("sequence", "=", sequence)
    .executeTakeFirst();
}

/** Returns the bytes of the rows of a chain after a number, up to another. */
export async function findAuditBytes(
  db: Reader,
  { organizationId }: Scope,
  after: number,
  last: number,
): Promise<number> {
  const { bytes } = await builderOf(db)
    .selectFrom("audit_log")
    .select(
      sql<number>`coalesce(sum(octet_length(id) + octet_length(actor_id) + octet_length(operation)
        + octet_length(subject_type) + octet_length(subject_id) + octet_length(reason) + octet_length(diff)
        + coalesce(octet_length(packed_diff), 0) + coalesce(octet_length(hash), 0)), 0)`.as("bytes"),
    )
    .where("organization_id", "=", organizationId)
    .where("sequence", ">", after)
    .where("sequence", "<=", last)
    .executeTakeFirstOrThrow();
  return Number(bytes);
}

/** Seals an anchor for the job that removes rows. @throws Error for any other write */
export function sealAnchor(
  { keyId, mac }: AuditSeal,
  actor: Actor,
  operation: string,
  facts: AnchorFacts,
): AuditAnchor {
  if (actor !== SYSTEM || operation !== AUDIT_AGEING)
    throw new Error(`an anchor of the audit trail is not for ${operation} by ${actor.id}`);
  const named = { ...facts, key_id: keyId };
  return { ...named, hash: mac(anchorBytes(named)) };
}

/**
 * Records that the rows of a chain up to a head will be removed, before the first of them is.
 * @returns the anchor; undefined when another write came first
 */
export async function recordRemoval(
  tx: WriteTransaction,
  scope: Scope,
  before: AuditAnchor | undefined,
  last: ChainHead,
): Promise<AuditAnchor | undefined> {
  const { organizationId } = scope;
  const present = await findAnchor(tx.db, scope);
  if (!isSame(present, before)) return undefined;
  const anchor = tx.sealAnchor({
    organization_id: organizationId,
    sequence: present?.sequence ?? 0,
    chain_hash: present?.chain_hash ?? null,
    rows: present?.rows ?? 0,
    until_sequence: last.sequence,
    at: tx.now,
  });
  if (present) await updateAnchor(tx.db, anchor);
  else await builderOf(tx.db).insertInto("audit_anchor").values(anchor).execute();
  tx.record({
    organizationId,
    type: "organization",
    id: organizationId,
    kind: "updated",
    after: removalBody(last),
  });
  return anchor;
}

/**
 * Advances the anchor of a chain to a row, and removes the rows up to it.
 * @returns the anchor; undefined when another write came first
 * @throws Error when rows are missing
 */
export async function removeUpTo(
  tx: WriteTransaction,
  scope: Scope,
  before: AuditAnchor,
  last: ChainHead,
): Promise<AuditAnchor | undefined> {
  const { organizationId } = scope;
  const present = await findAnchor(tx.db, scope);
  if (!present || !isSame(present, before)) return undefined;
  const rows = last.sequence - present.sequence;
  const anchor = tx.sealAnchor({
    organization_id: organizationId,
    sequence: last.sequence,
    chain_hash: last.chain_hash,
    rows: present.rows + rows,
    until_sequence: present.until_sequence,
    at: tx.now,
  });
  // First, since the trigger allows only the removal of rows that the anchor covers; it moves only to an existing row.
  await updateAnchor(tx.db, anchor);
  const { numDeletedRows } = await builderOf(tx.db)
    .deleteFrom("audit_log")
    .where("organization_id", "=", organizationId)
    .where("sequence", "<=", last.sequence)
    .executeTakeFirstOrThrow();
  if (Number(numDeletedRows) !== rows)
    throw new Error(`${numDeletedRows} rows of the audit trail were there where ${rows} should go`);
  return anchor;
}

/**
 * Compares the contents of anchors, too: one that was changed without a new seal would otherwise be sealed as it is.
 */
const isSame = (one: AuditAnchor | undefined, other: AuditAnchor | undefined) =>
  Buffer.compare(bytesOf(one), bytesOf(other)) === 0;

const bytesOf = (anchor: AuditAnchor | undefined) =>
  anchor ? Buffer.concat([anchor.hash, anchorBytes(anchor)]) : Buffer.alloc(0);

async function updateAnchor(db: Reader, { organization_id, ...values }: AuditAnchor): Promise<void> {
  await builderOf(db)
    .updateTable("audit_anchor")
    .set(values)
    .where("organization_id", "=", organization_id)
    .execute();
}
