/** Start of a chain whose oldest rows were removed by retention: the last removed row, sealed with the audit key. */
export interface AuditAnchor {
  readonly organization_id: string;
  /** Number of the last removed row, and its hash; 0 and null before the first removal. */
  readonly sequence: number;
  readonly chain_hash: Uint8Array | null;
  /** Total number of removed rows. */
  readonly rows: number;
  /** Number of the last row to remove according to the newest entry about a removal. */
  readonly until_sequence: number;
  /** Milliseconds since 1970 UTC. */
  readonly at: number;
  readonly key_id: string;
  readonly hash: Uint8Array;
}

/** Facts of an anchor, before it is sealed. */
export type AnchorFacts = Omit<AuditAnchor, "key_id" | "hash">;
