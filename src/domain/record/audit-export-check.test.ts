import { createHmac } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { auditBytes } from "./audit-chain.ts";
import { type ExportLine, exportedRow, namedHead } from "./audit-export.ts";
import { createExportCheck } from "./audit-export-check.ts";
import { type AuditMac, chainRemovalBody, type StoredAuditRow } from "./audit-verification.ts";

const ORGANIZATION = "0190-harbour";
const mac: AuditMac = (keyId, bytes) => createHmac("sha256", keyId).update(bytes).digest();

/** Returns the rows of a chain; those with null as their diff are of the first release. */
function chainOf(
  organization_id: string | null,
  diffs: readonly (string | null)[],
): readonly StoredAuditRow[] {
  let previous: Uint8Array | null = null;
  return diffs.map((diff, index): StoredAuditRow => {
    const facts = {
      id: `${organization_id}-${index + 1}`,
      organization_id,
      sequence: index + 1,
      at: 1_000 + index,
      actor_id: "system",
      actor_principal: 4,
      operation: "test",
      subject_type: "organization",
      subject_id: ORGANIZATION,
      reason: "",
      diff: diff ?? "{}",
    };
    if (diff === null) return { ...facts, key_id: null, previous_hash: null, hash: null };
    const row = { ...facts, key_id: "one" };
    const [before, hash] = [previous, mac("one", auditBytes(row, previous)) ?? null];
    previous = hash;
    return { ...row, previous_hash: before, hash };
  });
}

const linesOf = (rows: readonly StoredAuditRow[]): ExportLine[] =>
  rows.map((row, index) => ({ row: exportedRow(row, rows[index - 1]?.hash ?? null) }));

const headOf = (rows: readonly StoredAuditRow[]) => {
  const { organization_id = null, sequence = 0, hash = null } = rows.at(-1) ?? {};
  return namedHead(organization_id, { sequence, chain_hash: hash });
};

/** Returns what is found of the chain of the organization. */
function foundIn(...lines: readonly ExportLine[]) {
  const check = createExportCheck(mac);
  for (const line of lines) check.add(line);
  return check.end().find(({ organizationId }) => organizationId === ORGANIZATION);
}

describe("a row that comes again", () => {
  const rows = chainOf(ORGANIZATION, [null, null, "{}", "{}"]);
  const heads = { heads: [headOf(rows)] };

  test("may be one of the first release, which has no hash", () => {
    expect(foundIn(...linesOf(rows), ...linesOf(rows), heads)?.broken).toBeUndefined();
  });

  test("is a break where it has no hash in place of one that had", () => {
    const [, , third] = linesOf(rows);
    if (!third || !("row" in third)) throw new Error("there is no third row");
    const forged = {
      row: { ...third.row, diff: '{"a":"lie"}', keyId: null, previousHash: null, hash: null },
    };
    expect(foundIn(...linesOf(rows), forged, heads)?.broken?.problem).toBe("its number appears twice");
  });
});

describe("an export that is cut off", () => {
  const rows = chainOf(ORGANIZATION, ["{}", "{}"]);
  const problem = "the export does not end with the heads of the chains";

  test("breaks behind its last row", () => {
    expect(foundIn(...linesOf(rows))?.broken).toEqual({ sequence: 3, problem });
    const after = { after: [headOf(rows.slice(0, 1))] };
    expect(foundIn(after, ...linesOf(rows).slice(1))?.broken).toEqual({ sequence: 3, problem });
  });

  test("breaks at a row before where that does not hold", () => {
    expect(foundIn(...linesOf(rows.toReversed()))?.broken).toMatchObject({ sequence: 1 });
    expect(foundIn(...linesOf(rows.toReversed()))?.broken?.problem).not.toBe(problem);
  });
});

describe("the chain of an organization that was removed", () => {
  const rows = chainOf(ORGANIZATION, ["{}", "{}", "{}"]);
  const { sequence, hash } = rows.at(-1) ?? { sequence: 0, hash: null };
  const { chain } = chainRemovalBody("harbour", { sequence, chain_hash: hash });
  const installation = chainOf(null, ["{}", JSON.stringify({ chain: [chain, null] })]);
  const heads = { heads: [headOf(installation)] };
  const removal = [...linesOf(installation), heads];

  test("holds, whether it was exported to its end or not", () => {
    for (const some of [[], linesOf(rows).slice(0, 2), linesOf(rows)]) {
      const found = foundIn(...some, ...removal);
      expect([found?.broken, found?.removal?.head.sequence]).toEqual([undefined, 3]);
    }
  });

  test("breaks where a row was changed or left out", () => {
    const lines = linesOf(rows);
    const changed = lines.map((line, index) =>
      "row" in line && index === 1 ? { row: { ...line.row, reason: "x" } } : line,
    );
    expect(foundIn(...changed, ...removal)?.broken).toMatchObject({ sequence: 2 });
    expect(foundIn(...lines.toSpliced(1, 1), ...removal)?.broken).toMatchObject({ sequence: 2 });
  });

  test("breaks where the end of the exports names it still", () => {
    const named = { heads: [...heads.heads, headOf(rows)] };
    const found = foundIn(...linesOf(rows), ...linesOf(installation), named);
    expect(found?.broken?.problem).toContain("says that the organization was removed");
  });
});
