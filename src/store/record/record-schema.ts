/**
 * Rows of the audit log, the event feed and idempotency; ../schema.ts combines them and explains
 * how to read them.
 */

/** Facts about the installation itself, such as the key file that it belongs to. */
export interface FactTable {
  name: string;
  value: string;
}

export interface AuditLogTable {
  id: string;
  /** Null for changes of the installation as a whole. */
  organization_id: string | null;
  sequence: number;
  at: number;
  actor_id: string;
  /** Principal by number; 0 for the operator and the system itself. */
  actor_principal: number;
  operation: string;
  subject_type: string;
  subject_id: string;
  reason: string;
  /** JSON object of changed path to [before, after]; never contains secrets. Empty where it is packed. */
  diff: string;
  /** Hash of the previous row, in rows of earlier releases; the hash of each row covers it. */
  previous_hash: Uint8Array | null;
  /** Keyed hash over the row and the hash of the row before; null for rows of the first release. */
  hash: Uint8Array | null;
  key_id: string | null;
  /** The diff in the form of packed-diff.ts; null where `diff` has its text. */
  packed_diff: Uint8Array | null;
}

export interface EventTable {
  organization_id: string;
  sequence: number;
  at: number;
  kind: string;
  resource_type: string;
  resource_id: string;
  /** Id of the subject that created the resource; null for none, and in older rows. */
  creator_id: string | null;
  /** Id of the owner of a resource of a personal type; null for other types, and in older rows. */
  owner_id: string | null;
  /** Id of the environment that the resource is, or is in. */
  environment_id: string | null;
}

/** A response stored for a caller that repeats its request. */
export interface IdempotencyTable {
  caller_id: string;
  operation: string;
  key: string;
  request_hash: Uint8Array;
  response: Uint8Array;
  created_at: number;
  organization_id: string | null;
  /** 1 when the response contained a secret, which was left out. */
  redacted: number;
}

/** The one row of the installation's own audit chain; cached during a commit, see WriteBackRow. */
export interface InstallationTable {
  id: number;
  /** The lowest feature level of the servers that may use the data: see src/store/feature-level.ts. */
  feature_level: number;
  sequence: number;
  chain_hash: Uint8Array | null;
}

/** Organizations whose old events are being removed, inside the transaction that does it. */
export interface PruningTable {
  organization_id: string;
}

/** The position up to which a chain of the audit trail has been exported to a target that has confirmed it. */
export interface AuditExportTable {
  target: string;
  /** Empty for the chain of the installation. */
  organization_id: string;
  sequence: number;
  chain_hash: Uint8Array | null;
  key_id: string;
  hash: Uint8Array;
}

/** Start of a chain whose oldest rows retention has removed; see src/domain/record/audit-anchor.ts. */
export interface AuditAnchorTable {
  organization_id: string;
  sequence: number;
  chain_hash: Uint8Array | null;
  rows: number;
  until_sequence: number;
  at: number;
  key_id: string;
  hash: Uint8Array;
}
