/** The part of an audit row that its hash vouches for: all of it but the hash. */
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
  /** Names the secret that the hash is made with. */
  readonly key_id: string;
}

/**
 * The bytes that a row's hash is made over: every fact and the hash of the row
 * before, each in its place, so that no fact can pass for another and no row
 * can be changed, left out or moved without the next hash telling.
 *
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
  return new TextEncoder().encode(text);
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("hex");
}
