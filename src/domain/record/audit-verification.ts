import type { AuditAnchor } from "../audit-anchor.ts";
import type { JsonObject } from "../diff.ts";
import { parseRemoval, recordProblem } from "./audit-ageing.ts";
import { anchorProblem, headOfAnchor } from "./audit-anchor.ts";
import { type AuditFacts, auditBytes } from "./audit-chain.ts";

/** An audit row as it is stored; rows of the first release have no hash. */
export interface StoredAuditRow extends Omit<AuditFacts, "key_id"> {
  readonly key_id: string | null;
  /** Null in rows that do not store their predecessor's hash; their own hash covers it nevertheless. */
  readonly previous_hash: Uint8Array | null;
  readonly hash: Uint8Array | null;
}

/** The stored record of a chain's newest row. */
export interface ChainHead {
  readonly sequence: number;
  readonly chain_hash: Uint8Array | null;
}

/** The result of verifying one chain. */
export interface ChainReport {
  /** Null for the chain of the installation. */
  readonly organizationId: string | null;
  /** Number of rows present. */
  readonly rows: number;
  /** Number of valid rows before the break; the number of all rows if there is no break. */
  readonly validRows: number;
  /** Number of valid rows of the first release, which no hash covers. */
  readonly unhashed: number;
  /** Hash of the last valid row; null when none has one. */
  readonly hash: Uint8Array | null;
  /** The first place where the chain is invalid. */
  readonly broken?: ChainBreak;
  /** End of the chain of an organization that the operator removed. */
  readonly removal?: ChainRemoval;
  /** Start of a chain whose oldest rows were removed by retention. */
  readonly anchor?: AuditAnchor;
}

/** The entry in the installation's chain about the chain of a removed organization. */
export interface ChainRemoval {
  readonly organizationId: string;
  /** Milliseconds since 1970 UTC. */
  readonly at: number;
  readonly actorId: string;
  readonly head: ChainHead;
}

export interface ChainBreak {
  /** Number of the row that is wrong or missing. */
  readonly sequence: number;
  /** Description of the problem, as the end of a sentence about that row. */
  readonly problem: string;
}

/**
 * Computes the hash of an audit row; returns undefined when the key with that id is not available.
 */
export type AuditMac = (keyId: string, bytes: Uint8Array) => Uint8Array | undefined;

/**
 * Returns a verifier of one chain, which takes its rows in ascending order from the first. The
 * head, which is stored apart from the rows, reveals a tail that was cut off.
 * @param after the anchor, or head of an export, that the rows continue from; undefined to start at the first row
 */
export function createChainVerifier(
  organizationId: string | null,
  mac: AuditMac,
  after?: ChainHead | AuditAnchor,
) {
  const anchor = after && "organization_id" in after ? after : undefined;
  const begin: ChainHead | undefined = anchor ? headOfAnchor(anchor) : after;
  let rows = 0;
  let validRows = 0;
  let unhashed = 0;
  let sequence = begin?.sequence ?? 0;
  let previous: Uint8Array | null = begin?.chain_hash ?? null;
  let broken = anchor && anchorProblem(anchor, mac);
  /** The last removed row, according to the newest entry about a removal. */
  let recorded: ChainHead | undefined;
  return {
    /** @returns whether the chain is valid up to the row */
    add(row: StoredAuditRow): boolean {
      rows += 1;
      if (broken) return false;
      broken = sequenceProblem(row, sequence + 1, anchor) ?? hashProblem(row, previous, mac);
      if (broken) return false;
      validRows += 1;
      sequence = row.sequence;
      previous = row.hash;
      if (row.hash === null) unhashed += 1;
      else recorded = parseRemoval(row) ?? recorded;
      return true;
    },
    /**
     * Returns the report on the chain.
     * @param head undefined when the organization itself was removed
     * @param isWhole false where the entry about a removal may come after the rows that were added
     */
    end(head: ChainHead | undefined, isWhole = true): ChainReport {
      broken ??= endProblem({ sequence, hash: previous }, head);
      if (anchor && isWhole) broken ??= recordProblem(anchor, recorded);
      const found = { organizationId, rows, validRows, unhashed, hash: previous };
      return { ...found, ...(broken && { broken }), ...(anchor && { anchor }) };
    },
  };
}

/**
 * Returns the head of a removed chain in the form of the entry about its removal, with the name of
 * the organization.
 */
export function chainRemovalBody(name: string, { sequence, chain_hash }: ChainHead): JsonObject {
  const hash = chain_hash === null ? null : Buffer.from(chain_hash).toString("hex");
  return { name, chain: { sequence, hash } };
}

/**
 * Returns the removal that a row of the installation's chain records; undefined when it records
 * none.
 */
export function parseChainRemoval(row: StoredAuditRow): ChainRemoval | undefined {
  if (row.organization_id !== null || row.subject_type !== "organization") return undefined;
  const diff = JSON.parse(row.diff) as Partial<
    Record<string, [{ sequence: number; hash: string | null }, unknown]>
  >;
  const [chain] = diff.chain ?? [];
  if (!chain) return undefined;
  const chain_hash = chain.hash === null ? null : Buffer.from(chain.hash, "hex");
  const head = { sequence: chain.sequence, chain_hash };
  return { organizationId: row.subject_id, at: row.at, actorId: row.actor_id, head };
}

/**
 * Returns the report on an organization that the installation's chain names and that has no rows
 * left.
 */
export function removedChainReport(organizationId: string, removal: ChainRemoval | undefined): ChainReport {
  const base = { organizationId, rows: 0, validRows: 0, unhashed: 0 };
  if (removal) return { ...base, hash: removal.head.chain_hash, removal };
  const problem = "the chain is missing, and so is its organization, which the installation's chain names";
  return { ...base, hash: null, broken: { sequence: 1, problem } };
}

/**
 * Returns the report on a chain that exists although the installation's chain records its removal.
 */
export function resurrectedChainReport(report: ChainReport): ChainReport {
  const problem = "the installation's chain says that the organization was removed";
  return { ...report, validRows: 0, broken: { sequence: 1, problem } };
}

function sequenceProblem(
  { sequence }: StoredAuditRow,
  expected: number,
  anchor: AuditAnchor | undefined,
): ChainBreak | undefined {
  if (sequence === expected) return undefined;
  if (anchor && sequence <= anchor.sequence)
    return {
      sequence,
      problem: `it exists, although its anchor says that the rows up to ${anchor.sequence} were removed`,
    };
  if (sequence < expected) return { sequence, problem: "its number appears twice" };
  const last = sequence - 1;
  const problem = last === expected ? "it is missing" : `the rows from here to ${last} are missing`;
  const without = expected === 1 ? ", and no anchor says that they were removed" : "";
  return { sequence: expected, problem: `${problem}${without}` };
}

function hashProblem(
  row: StoredAuditRow,
  previous: Uint8Array | null,
  mac: AuditMac,
): ChainBreak | undefined {
  const { sequence, key_id, hash } = row;
  if (hash === null || key_id === null) {
    const isFirstRelease = hash === null && key_id === null && row.previous_hash === null;
    if (isFirstRelease && previous === null) return undefined;
    return { sequence, problem: "it has no hash, although the rows before it or parts of it do" };
  }
  if (row.previous_hash !== null && !equal(row.previous_hash, previous)) {
    return { sequence, problem: "the hash of the row before it is not the one that it names" };
  }
  const expected = mac(key_id, auditBytes({ ...row, key_id }, previous));
  if (!expected)
    return { sequence, problem: `it was made with the key ${key_id}, which is not in the key file` };
  if (!equal(hash, expected))
    return { sequence, problem: "it was changed: its content does not match its hash" };
  return undefined;
}

function endProblem(
  last: { sequence: number; hash: Uint8Array | null },
  head: ChainHead | undefined,
): ChainBreak | undefined {
  const next = last.sequence + 1;
  if (!head)
    return { sequence: next, problem: "the chain belongs to no organization, so its end is unknown" };
  if (head.sequence > last.sequence) {
    const problem =
      head.sequence === next
        ? "it is missing at the end of the chain"
        : `the rows from here to ${head.sequence} are missing at the end of the chain`;
    return { sequence: next, problem };
  }
  if (head.sequence < last.sequence) {
    return {
      sequence: last.sequence,
      problem: `the head of the chain names ${head.sequence} as the last row`,
    };
  }
  if (!equal(head.chain_hash, last.hash)) {
    return { sequence: last.sequence, problem: "its hash is not the one that the head of the chain names" };
  }
  return undefined;
}

function equal(one: Uint8Array | null, other: Uint8Array | null): boolean {
  if (one === null || other === null) return one === other;
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}
