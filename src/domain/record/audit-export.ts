import type { NamedAnchor } from "./audit-anchor.ts";
import type { ChainHead, StoredAuditRow } from "./audit-verification.ts";

/** The end of a chain, as exports name it. */
export interface NamedHead {
  /** Id of the organization; null for the chain of the installation. */
  readonly chain: string | null;
  readonly sequence: number;
  /** In hexadecimal digits; null when no row of the chain has one. */
  readonly hash: string | null;
}

/** A row of the audit trail in an export: what its hash covers, and the hash of the row before. */
export interface ExportedRow {
  readonly chain: string | null;
  readonly sequence: number;
  readonly id: string;
  /** As in RFC 3339, with milliseconds. */
  readonly at: string;
  readonly actorId: string;
  readonly actorPrincipal: number;
  readonly operation: string;
  readonly subjectType: string;
  readonly subjectId: string;
  readonly reason: string;
  /** JSON, to the letter: the hash covers it. */
  readonly diff: string;
  readonly keyId: string | null;
  readonly previousHash: string | null;
  readonly hash: string | null;
}

/**
 * A line of an export: the heads that it goes on from, with the anchors of chains whose older rows went, a row, or at its end the heads of all chains. A continuous one has
 * after some rows the ends that their chains have reached.
 */
export type ExportLine =
  | { readonly after: readonly NamedHead[]; readonly anchors?: readonly NamedAnchor[] }
  | { readonly row: ExportedRow }
  | { readonly heads: readonly NamedHead[] }
  | { readonly reached: readonly NamedHead[] };

/** A kind of place to which the trail is exported as it grows. */
export type AuditTarget = "file" | "otlp";

/** A place to which the trail is exported as it grows. */
export interface AuditSink {
  readonly target: AuditTarget;
  /** Removes what a process that was killed has left of a line. Called once, before the first lines. */
  repair?(): Promise<void>;
  /**
   * Takes lines; what it has taken may come again.
   * @param confirmed finds what the target had confirmed before, with which a new file begins
   * @throws when it cannot confirm that it has all of them
   */
  take(lines: readonly ExportLine[], confirmed: () => Promise<readonly NamedHead[]>): Promise<void>;
  /** Gives back what it holds open until it takes lines again. */
  close?(): Promise<void>;
}

const hex = (bytes: Uint8Array | null) => (bytes === null ? null : Buffer.from(bytes).toString("hex"));
const bytesOf = (text: string | null) => (text === null ? null : Buffer.from(text, "hex"));

/** Returns a head as exports name it. */
export function namedHead(chain: string | null, { sequence, chain_hash }: ChainHead): NamedHead {
  return { chain, sequence, hash: hex(chain_hash) };
}

/** Returns a head as it is stored. */
export function headOf({ sequence, hash }: NamedHead): ChainHead {
  return { sequence, chain_hash: bytesOf(hash) };
}

/** Returns a row as exports have it. @param previousHash of the row before it in its chain */
export function exportedRow(row: StoredAuditRow, previousHash: Uint8Array | null): ExportedRow {
  return {
    chain: row.organization_id,
    sequence: row.sequence,
    id: row.id,
    at: new Date(row.at).toISOString(),
    actorId: row.actor_id,
    actorPrincipal: row.actor_principal,
    operation: row.operation,
    subjectType: row.subject_type,
    subjectId: row.subject_id,
    reason: row.reason,
    diff: row.diff,
    keyId: row.key_id,
    previousHash: hex(previousHash),
    hash: hex(row.hash),
  };
}

/** Returns an exported row as it was stored. */
export function storedRow(row: ExportedRow): StoredAuditRow {
  return {
    organization_id: row.chain,
    sequence: row.sequence,
    id: row.id,
    at: Date.parse(row.at),
    actor_id: row.actorId,
    actor_principal: row.actorPrincipal,
    operation: row.operation,
    subject_type: row.subjectType,
    subject_id: row.subjectId,
    reason: row.reason,
    diff: row.diff,
    key_id: row.keyId,
    // A row of the first release names none.
    previous_hash: row.hash === null ? null : bytesOf(row.previousHash),
    hash: bytesOf(row.hash),
  };
}
