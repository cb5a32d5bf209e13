/** Begin of a chain whose older rows retention has removed: the last row that was removed, sealed with the audit key. */
export interface AuditAnchor {
  readonly organization_id: string;
  /** Number of the last row that went, and its hash; 0 and null before the first has gone. */
  readonly sequence: number;
  readonly chain_hash: Uint8Array | null;
  /** Number of rows that went, in all. */
  readonly rows: number;
  /** Number of the last row that the newest record of a removal says will go. */
  readonly until_sequence: number;
  /** Milliseconds since 1970 UTC. */
  readonly at: number;
  readonly key_id: string;
  readonly hash: Uint8Array;
}

/** Facts of an anchor, before it is sealed. */
export type AnchorFacts = Omit<AuditAnchor, "key_id" | "hash">;
