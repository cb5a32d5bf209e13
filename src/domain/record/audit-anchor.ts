import type { AuditAnchor } from "../audit-anchor.ts";
import type { AuditMac, ChainBreak, ChainHead } from "./audit-verification.ts";

/** An anchor in the form of exports. */
export interface NamedAnchor {
  readonly chain: string;
  readonly sequence: number;
  readonly hash: string | null;
  readonly rows: number;
  readonly until: number;
  readonly at: number;
  readonly keyId: string;
  readonly seal: string;
}

/** The operation under which the removal of rows is written and recorded. */
export const AUDIT_AGEING = "job/audit-retention";

const encoder = new TextEncoder();
const hex = (bytes: Uint8Array | null) => (bytes === null ? null : Buffer.from(bytes).toString("hex"));

/**
 * Returns the bytes that the seal of an anchor is computed over. They begin with "anchor", so they cannot be taken for
 * those of a row, which begin with a hash or null.
 */
export function anchorBytes(anchor: Omit<AuditAnchor, "hash">): Uint8Array {
  const { organization_id, sequence, chain_hash, rows, until_sequence, at, key_id } = anchor;
  return encoder.encode(
    JSON.stringify(["anchor", key_id, organization_id, sequence, hex(chain_hash), rows, until_sequence, at]),
  );
}

/** Returns the head from which a chain continues after an anchor. */
export const headOfAnchor = ({
  sequence,
  chain_hash,
}: Pick<AuditAnchor, "sequence" | "chain_hash">): ChainHead => ({
  sequence,
  chain_hash,
});

/** Returns why an anchor cannot be trusted; undefined for a valid one that the server has sealed. */
export function anchorProblem(anchor: AuditAnchor, mac: AuditMac): ChainBreak | undefined {
  const { sequence, rows, until_sequence, key_id, hash } = anchor;
  const problem = (text: string): ChainBreak => ({ sequence, problem: text });
  const expected = mac(key_id, anchorBytes(anchor));
  if (!expected) return problem(`its anchor was made with the key ${key_id}, which is not in the key file`);
  if (Buffer.compare(expected, hash) !== 0)
    return problem("its anchor was changed: it does not match its seal");
  // A chain begins with row 1, and only its oldest rows are removed.
  if (rows !== sequence || until_sequence < sequence)
    return problem(
      `its anchor is inconsistent: it counts ${rows} rows up to row ${sequence}, and plans removal up to row ${until_sequence}`,
    );
  return undefined;
}

/** Returns an anchor in the form of exports. */
export function namedAnchor(anchor: AuditAnchor): NamedAnchor {
  return {
    chain: anchor.organization_id,
    sequence: anchor.sequence,
    hash: hex(anchor.chain_hash),
    rows: anchor.rows,
    until: anchor.until_sequence,
    at: anchor.at,
    keyId: anchor.key_id,
    seal: hex(anchor.hash) ?? "",
  };
}

/** Returns an exported anchor in the form in which it was stored. */
export function anchorOf({ chain, sequence, hash, rows, until, at, keyId, seal }: NamedAnchor): AuditAnchor {
  return {
    organization_id: chain,
    sequence,
    chain_hash: hash === null ? null : Buffer.from(hash, "hex"),
    rows,
    until_sequence: until,
    at,
    key_id: keyId,
    hash: Buffer.from(seal, "hex"),
  };
}
