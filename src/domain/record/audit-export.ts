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
  /** RFC 3339 timestamp with milliseconds. */
  readonly at: string;
  readonly actorId: string;
  readonly actorPrincipal: number;
  readonly operation: string;
  readonly subjectType: string;
  readonly subjectId: string;
  readonly reason: string;
  /** JSON, byte for byte as it was stored: the hash covers it. */
  readonly diff: string;
  readonly keyId: string | null;
  readonly previousHash: string | null;
  readonly hash: string | null;
}

/**
 * A line of an export:
 * - `after`: first, the heads that the export continues from, with the anchors of chains whose oldest rows were removed.
 * - `row`: one row of the trail.
 * - `heads`: last, the heads of all chains.
 * - `reached`: in a continuous export, after some rows, the ends that their chains have reached.
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
  /** Removes the partial line that a killed process left behind. Called once, before the first lines. */
  repair?(): Promise<void>;
  /**
   * Writes lines; lines that were written before may be repeated.
   * @param confirmed finds the heads that the target had confirmed before; a new file begins with them
   * @throws when it cannot confirm that all lines were written
   */
  take(lines: readonly ExportLine[], confirmed: () => Promise<readonly NamedHead[]>): Promise<void>;
  /** Releases open files and connections until the next lines. */
  close?(): Promise<void>;
}

const hex = (bytes: Uint8Array | null) => (bytes === null ? null : Buffer.from(bytes).toString("hex"));
const bytesOf = (text: string | null) => (text === null ? null : Buffer.from(text, "hex"));

/** Returns a head in the form of exports. */
export function namedHead(chain: string | null, { sequence, chain_hash }: ChainHead): NamedHead {
  return { chain, sequence, hash: hex(chain_hash) };
}

/** Returns a head of an export in the form in which it is stored. */
export function headOf({ sequence, hash }: NamedHead): ChainHead {
  return { sequence, chain_hash: bytesOf(hash) };
}

/** Returns a row in the form of exports. @param previousHash hash of the row before it in its chain */
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

/** Returns an exported row in the form in which it was stored. */
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
    // Rows of the first release have no hash and name no predecessor.
    previous_hash: row.hash === null ? null : bytesOf(row.previousHash),
    hash: bytesOf(row.hash),
  };
}
