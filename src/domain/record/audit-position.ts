import type { AuditTarget } from "./audit-export.ts";
import type { AuditMac, ChainHead } from "./audit-verification.ts";

/**
 * Position up to which an export target has confirmed a chain. It is sealed with the audit key, because rows up to it may
 * be removed.
 */
export interface AuditPosition extends ChainHead {
  readonly target: AuditTarget;
  /** Null for the chain of the installation. */
  readonly chain: string | null;
  readonly key_id: string;
  readonly hash: Uint8Array;
}

/** Facts of a position, before it is sealed. */
export type PositionFacts = Omit<AuditPosition, "key_id" | "hash">;

/** Computes seals with the newest key. */
export interface AuditSealing {
  readonly keyId: string;
  mac(bytes: Uint8Array): Uint8Array;
}

/** The operation under which positions are written. */
export const AUDIT_EXPORT = "job/audit-export";

const encoder = new TextEncoder();

/** Seals a position with the newest key. */
export function sealPosition(facts: PositionFacts, { keyId, mac }: AuditSealing): AuditPosition {
  const named = { ...facts, key_id: keyId };
  return { ...named, hash: mac(positionBytes(named)) };
}

/**
 * Returns the bytes that the seal of a position is computed over. They begin with "position", so they cannot be taken
 * for those of a row, which begin with a hash or null.
 */
function positionBytes({ target, chain, sequence, chain_hash, key_id }: Omit<AuditPosition, "hash">) {
  const head = chain_hash === null ? null : Buffer.from(chain_hash).toString("hex");
  return encoder.encode(JSON.stringify(["position", key_id, target, chain, sequence, head]));
}

/**
 * Returns whether the server has sealed a position. Without the seal, anybody who can write to the database could have
 * rows removed that were not exported.
 */
export function isSealedPosition(position: AuditPosition, mac: AuditMac): boolean {
  const expected = mac(position.key_id, positionBytes(position));
  return expected !== undefined && Buffer.compare(expected, position.hash) === 0;
}
