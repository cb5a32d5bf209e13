import type { AuditAnchor } from "../audit-anchor.ts";
import { anchorOf, type NamedAnchor } from "./audit-anchor.ts";
import { auditBytes } from "./audit-chain.ts";
import { type ExportLine, headOf, type NamedHead, storedRow } from "./audit-export.ts";
import {
  type AuditMac,
  type ChainBreak,
  type ChainRemoval,
  type ChainReport,
  createChainVerifier,
  parseChainRemoval,
  removedChainReport,
  resurrectedChainReport,
  type StoredAuditRow,
} from "./audit-verification.ts";

/** The result of checking one chain of exports. */
export interface ExportedChainReport extends ChainReport {
  /** Number of the first row that the exports must contain: 1 unless they begin with a later one. */
  readonly first: number;
}

/**
 * Returns a checker of consecutive exports: each chain must continue where the export before ended, and reach the head
 * that the last export names. Rows may be repeated.
 */
export function createExportCheck(mac: AuditMac) {
  const chains = new Map<string | null, ReturnType<typeof chainOf>>();
  const named = new Set<string>();
  const removals = new Map<string, ChainRemoval>();
  /** The latest end of each chain that the exports name, including ends that an export continues from. */
  let ends = new Map<string | null, NamedHead>();
  let isEnded = false;
  const chainOf = (chain: string | null, after?: NamedHead, anchor?: AuditAnchor) => ({
    first: (after?.sequence ?? 0) + 1,
    last: after?.sequence ?? 0,
    /** Number of the last row of the first release, which no hash covers. */
    lastUnhashed: after?.hash === null ? after.sequence : 0,
    isValid: true,
    verifier: createChainVerifier(chain, mac, anchor ?? (after && headOf(after))),
  });
  const find = (id: string | null) => {
    const chain = chains.get(id) ?? chainOf(id);
    chains.set(id, chain);
    return chain;
  };
  const addRow = (row: StoredAuditRow) => {
    const chain = find(row.organization_id);
    if (row.sequence <= chain.last && isRepeated(row, chain.lastUnhashed, mac)) return;
    chain.last = Math.max(chain.last, row.sequence);
    if (row.organization_id === null && row.subject_type === "organization") named.add(row.subject_id);
    chain.isValid = chain.verifier.add(row);
    if (chain.isValid && row.hash === null) chain.lastUnhashed = row.sequence;
    const removal = chain.isValid ? parseChainRemoval(row) : undefined;
    if (!removal) return;
    removals.set(removal.organizationId, removal);
    ends.delete(removal.organizationId);
  };
  /** Sets the ends of some chains; a repeated part of an export does not move an end back. */
  const reach = (heads: readonly NamedHead[]) => {
    for (const head of heads)
      if (head.sequence >= (ends.get(head.chain)?.sequence ?? 0)) ends.set(head.chain, head);
  };
  const begin = (heads: readonly NamedHead[], anchors: readonly NamedAnchor[]) => {
    const sealed = new Map(anchors.map((anchor) => [anchor.chain, anchor]));
    for (const after of heads) {
      const anchor = sealed.get(after.chain ?? "");
      if (!chains.has(after.chain))
        chains.set(after.chain, chainOf(after.chain, after, anchor && anchorOf(anchor)));
    }
    // The rows up to these heads were exported earlier, even if no row follows.
    reach(heads);
  };
  return {
    add(line: ExportLine): void {
      if ("row" in line) addRow(storedRow(line.row));
      else if ("after" in line) begin(line.after, line.anchors ?? []);
      else {
        isEnded = true;
        if ("heads" in line) ends = new Map(line.heads.map((head) => [head.chain, head]));
        else reach(line.reached);
      }
    },
    /** Returns what was found, chain by chain. */
    end(): ExportedChainReport[] {
      for (const chain of ends.keys()) find(chain);
      const reports = [...chains].map(([id, { verifier, first, last, isValid }]) => {
        const removal = id === null ? undefined : removals.get(id);
        const end = ends.get(id);
        const found = verifier.end(end ? headOf(end) : removal?.head, false);
        let report = found;
        if (removal && end) report = resurrectedChainReport(found);
        // If the organization was removed since, its last rows need not have been exported.
        else if (removal && isValid && (!found.broken || last < removal.head.sequence))
          report = removedChainReport(removal.organizationId, removal);
        if (isEnded) return { ...report, first };
        // A missing end of the export explains more than the problems that follow from it.
        const broken = isValid ? undefined : report.broken;
        return { ...report, broken: broken ?? cutOff(last), first };
      });
      const gone = [...named].filter((id) => !chains.has(id));
      return reports.concat(gone.map((id) => ({ ...removedChainReport(id, removals.get(id)), first: 1 })));
    },
  };
}

/** Returns whether a repeated row is genuine: its hash was made with the key, or it is a row of the first release. */
function isRepeated(row: StoredAuditRow, lastUnhashed: number, mac: AuditMac): boolean {
  if (row.hash === null || row.key_id === null)
    return row.hash === null && row.key_id === null && row.sequence <= lastUnhashed;
  const expected = mac(row.key_id, auditBytes({ ...row, key_id: row.key_id }, row.previous_hash));
  return expected !== undefined && Buffer.compare(expected, row.hash) === 0;
}

const cutOff = (last: number): ChainBreak => ({
  sequence: last + 1,
  problem: "the export does not end with the heads of the chains",
});
