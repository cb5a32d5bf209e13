/** The fields of an audit row that its hash covers: all but the hash. */
export interface AuditFacts {
  readonly id: string;
  /** Null in the chain of the installation. */
  readonly organization_id: string | null;
  readonly sequence: number;
  /** Milliseconds since 1970 UTC. */
  readonly at: number;
  readonly actor_id: string;
  readonly actor_principal: number;
  readonly operation: string;
  readonly subject_type: string;
  readonly subject_id: string;
  readonly reason: string;
  readonly diff: string;
  /** Id of the secret that the hash is made with. */
  readonly key_id: string;
}

/**
 * Returns the bytes that a row's hash is computed over: every field and the hash of the row before,
 * in a fixed order. No field can be mistaken for another, and changing, leaving out or moving a row
 * makes the next hash invalid.
 * @param previousHash null for the first hashed row of a chain
 */
export function auditBytes(row: AuditFacts, previousHash: Uint8Array | null): Uint8Array {
  const text = JSON.stringify([
    previousHash === null ? null : hex(previousHash),
    row.key_id,
    row.organization_id,
    row.sequence,
    row.id,
    row.at,
    row.actor_id,
    row.actor_principal,
    row.operation,
    row.subject_type,
    row.subject_id,
    row.reason,
    row.diff,
  ]);
  // Short buffers share pooled memory; those of a TextEncoder do not.
  return Buffer.from(text);
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("hex");
}
