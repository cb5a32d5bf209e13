import { headOfAnchor, namedAnchor } from "../../domain/record/audit-anchor.ts";
import {
  type ExportLine,
  exportedRow,
  headOf,
  type NamedHead,
  namedHead,
} from "../../domain/record/audit-export.ts";
import {
  type AuditMac,
  type ChainHead,
  type ChainRemoval,
  type ChainReport,
  createChainVerifier,
  parseChainRemoval,
  removedChainReport,
  resurrectedChainReport,
  type StoredAuditRow,
} from "../../domain/record/audit-verification.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader } from "../store.ts";
import { findAnchors } from "./audit-ageing.ts";
import { diffOfTampered } from "./packed-diff.ts";

/**
 * Verifies every chain from its first row, or its anchor, to the head that its owner stores: the installation's
 * first, then those of the organizations, and last those that are missing although the
 * installation's chain names their organization, with its record of their removal, if any. `db`
 * must show one state throughout. It covers the installation, so it takes no scope.
 */
export async function verifyChains(db: Reader, mac: AuditMac): Promise<ChainReport[]> {
  const heads = await findHeads(db);
  const anchors = await findAnchors(db);
  // An anchor without its organization belongs to no chain, and is one that breaks.
  const verifiers = new Map(
    [...new Set([...heads.keys(), ...anchors.keys()])].map((id) => [
      id,
      createChainVerifier(id, mac, anchors.get(id ?? "")),
    ]),
  );
  const named = new Set<string>();
  const removals = new Map<string, ChainRemoval>();
  for await (const row of auditRows(db)) {
    if (row.organization_id === null && row.subject_type === "organization") named.add(row.subject_id);
    let verifier = verifiers.get(row.organization_id);
    if (!verifier) {
      verifier = createChainVerifier(row.organization_id, mac);
      verifiers.set(row.organization_id, verifier);
    }
    // Rows of the installation's chain after a break cannot be trusted.
    const removal = verifier.add(row) ? parseChainRemoval(row) : undefined;
    if (removal) removals.set(removal.organizationId, removal);
  }
  const present = [...verifiers].map(([id, verifier]) => {
    const report = verifier.end(heads.get(id));
    return id !== null && removals.has(id) ? resurrectedChainReport(report) : report;
  });
  const gone = [...named].filter((id) => !verifiers.has(id));
  return present.concat(gone.map((id) => removedChainReport(id, removals.get(id))));
}

/**
 * Yields the lines of an export: the heads from which it continues, all rows after them, and the heads of all chains.
 * `db` must be a consistent snapshot. It covers the installation, so it takes no scope.
 */
export async function* exportChains(db: Reader, after: readonly NamedHead[]): AsyncGenerator<ExportLine> {
  const heads = await findHeads(db);
  const known = new Map(after.map((head) => [head.chain, headOf(head)]));
  const gone = new Map(
    [...(await findAnchors(db))].filter(([id, { sequence }]) => heads.has(id) && sequence > 0),
  );
  const fresh = [...gone].filter(([id]) => !known.has(id));
  const begun = fresh.map(([id, anchor]) => namedHead(id, headOfAnchor(anchor)));
  const anchors = fresh.map(([, anchor]) => namedAnchor(anchor));
  yield {
    after: [...after.filter(({ chain }) => heads.has(chain)), ...begun],
    ...(anchors.length > 0 && { anchors }),
  };
  for (const chain of heads.keys()) {
    const [head, anchor] = [known.get(chain), gone.get(chain ?? "")];
    // Rows removed since an earlier export are in neither: verification reports them as missing.
    const from = anchor && anchor.sequence > (head?.sequence ?? 0) ? headOfAnchor(anchor) : head;
    let previous = from?.chain_hash ?? null;
    for await (const row of auditRows(db, { chain, after: from?.sequence ?? 0 })) {
      yield { row: exportedRow(row, previous) };
      previous = row.hash;
    }
  }
  yield { heads: [...heads].map(([chain, head]) => namedHead(chain, head)) };
}

async function findHeads(db: Reader): Promise<Map<string | null, ChainHead>> {
  const installation = await builderOf(db)
    .selectFrom("installation")
    .select(["sequence", "chain_hash"])
    .executeTakeFirst();
  const organizations = await builderOf(db)
    .selectFrom("organization")
    .select(["id", "sequence", "chain_hash"])
    .orderBy("id")
    .execute();
  const heads = new Map<string | null, ChainHead>();
  if (installation) heads.set(null, installation);
  for (const { id, ...head } of organizations) heads.set(id, head);
  return heads;
}

/** Reads row by row, so that a long trail needs little memory; with `of`, only those of one chain after a number. */
async function* auditRows(
  db: Reader,
  of?: { readonly chain: string | null; readonly after: number },
): AsyncIterable<StoredAuditRow> {
  let query = builderOf(db).selectFrom("audit_log").selectAll();
  if (of) {
    query = query.where("sequence", ">", of.after);
    query =
      of.chain === null
        ? query.where("organization_id", "is", null)
        : query.where("organization_id", "=", of.chain);
  }
  for await (const row of query.orderBy("organization_id").orderBy("sequence").stream())
    yield { ...row, diff: diffOfTampered(row) };
}
