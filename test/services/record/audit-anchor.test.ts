import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { AUDIT_FLOOR_ROWS, AUDIT_MIN_REMOVED_ROWS } from "../../../src/domain/record/audit-ageing.ts";
import { ageAudit } from "../../../src/jobs/retention/audit-ageing.ts";
import { verifyChains } from "../../../src/store/record/audit-chain.ts";
import { copyData, dropData } from "../../harness/data-config.ts";
import { postgresUrl } from "../../harness/postgres-database.ts";
import { type RawData, tampering, withRawData } from "../../harness/raw-data.ts";
import { openReadOnlyData } from "../../harness/read-only-data.ts";
import { START_MS } from "../../harness/test-store.ts";
import { type OldTrail, openOldTrail } from "./old-trail.ts";

let trail: OldTrail;
/** The id of the organization of each of two chains. */
let harbour: string;
let lighthouse: string;
/** Number of the first row that is left of the first of them, and of its last one. */
let first: number;
let head: number;
const folders: string[] = [];

beforeAll(async () => {
  trail = await openOldTrail();
  [harbour, lighthouse] = [trail.harbour.organizationId, trail.lighthouse.organizationId];
  for (const chain of [trail.harbour, trail.lighthouse])
    await trail.fill(chain, AUDIT_FLOOR_ROWS + AUDIT_MIN_REMOVED_ROWS);
  await trail.exportTo("file");
  const { store, clock } = trail.made;
  clock.now = START_MS;
  await ageAudit(store, trail.mac, { days: 365, targets: ["file"] }, clock.now);
  first = AUDIT_MIN_REMOVED_ROWS + 1;
  head = await trail.headOf(trail.harbour);
  expect(await trail.breaks()).toEqual([]);
  // A copy is made of what nobody uses.
  await store.close();
});
afterAll(async () => {
  for (const folder of [trail.made.dataDir, ...folders]) {
    rmSync(folder, { recursive: true });
    await dropData(folder);
  }
});

/** Copies the data to a folder of its own. */
function copied(): string {
  const folder = mkdtempSync(join(tmpdir(), "chartroom-copy-"));
  folders.push(folder);
  copyData(trail.made.dataDir, folder);
  return folder;
}

describe("the triggers refuse", () => {
  const REMOVED = "audit rows are never removed";
  const MOVES_ON = "anchors of the audit trail only move on, to a row that is there";

  test.each([
    // SQLite has none.
    ...(postgresUrl() === undefined ? [] : ["audit_log", "audit_anchor"]).map(
      (table) => [`truncate ${table}`, REMOVED] as const,
    ),
    // A table of the session, which its statements see first.
    ...(postgresUrl() === undefined
      ? []
      : [
          [
            "create temp table organization as select * from organization limit 0; delete from audit_log where organization_id is not null",
            REMOVED,
          ] as const,
        ]),
    ["delete from audit_log", REMOVED],
    ["delete from audit_log where organization_id is null", REMOVED],
    ["delete from audit_log where sequence = (select max(sequence) from audit_log)", REMOVED],
    ["delete from audit_anchor", "anchors of the audit trail are never removed"],
    ["update audit_anchor set sequence = sequence - 1", MOVES_ON],
    ["update audit_anchor set sequence = 0, rows = 0", MOVES_ON],
    ["update audit_anchor set until_sequence = until_sequence - 1", MOVES_ON],
    ["update audit_anchor set sequence = sequence + 1, rows = rows + 1", MOVES_ON],
    ["update audit_anchor set chain_hash = null", MOVES_ON],
    ["update audit_anchor set at = at + 1", MOVES_ON],
    ["update audit_anchor set hash = chain_hash", MOVES_ON],
    ["update audit_anchor set organization_id = 'x'", MOVES_ON],
  ])("%s", async (statement, message) => {
    await withRawData(trail.made.dataDir, (raw) => expect(raw.run(statement)).rejects.toThrow(message));
  });

  test("an anchor that begins in the middle of a chain, and one in the place of another", async () => {
    const insert = (sequence: number) =>
      withRawData(trail.made.dataDir, (raw) =>
        raw.rows(
          "insert into audit_anchor (organization_id, sequence, rows, until_sequence, at, key_id, hash) select ?, ?, 0, 9, 0, 'x', hash from audit_anchor limit 1",
          sequence === 0 ? harbour : "other",
          sequence,
        ),
      );
    await expect(insert(1)).rejects.toThrow("anchors of the audit trail begin before its first row");
    await expect(insert(0)).rejects.toThrow();
  });

  test("young rows and the newest ones, also behind an anchor", async () => {
    const folder = copied();
    const id = harbour;
    await tampering(folder, (raw) =>
      raw.rows(
        "update audit_anchor set until_sequence = 99999, sequence = 99999 where organization_id = ?",
        id,
      ),
    );
    await withRawData(folder, async (raw) => {
      const remove = (sequence: number) =>
        raw.rows("delete from audit_log where organization_id = ? and sequence = ?", id, sequence);
      await expect(remove(head - AUDIT_FLOOR_ROWS + 1)).rejects.toThrow(REMOVED);
      await expect(remove(head)).rejects.toThrow(REMOVED);
      await remove(first);
    });
    await tampering(folder, (raw) =>
      raw.rows(
        "update audit_log set at = ? where organization_id = ? and sequence = ?",
        Date.now(),
        id,
        first + 1,
      ),
    );
    await withRawData(folder, async (raw) => {
      const remove = raw.rows(
        "delete from audit_log where organization_id = ? and sequence = ?",
        id,
        first + 1,
      );
      await expect(remove).rejects.toThrow(REMOVED);
    });
  });
});

describe("a copy in which", () => {
  async function breaksAfter(attack: (raw: RawData) => Promise<unknown>): Promise<string[]> {
    const folder = copied();
    await tampering(folder, attack);
    const copy = await openReadOnlyData(folder);
    try {
      const reports = await verifyChains(copy.reader, trail.mac);
      return reports.flatMap(({ broken }) => (broken ? [broken.problem] : []));
    } finally {
      await copy.close();
    }
  }
  const SEAL = "its anchor was changed: it does not match its seal";
  const on = () => `where organization_id = '${harbour}'`;

  test("an anchor is missing, forged, cut short, or another's breaks, each with a sentence", async () => {
    expect(await breaksAfter((raw) => raw.run(`delete from audit_anchor ${on()}`))).toEqual([
      expect.stringMatching(
        /^the rows from here to \d+ are missing, and no anchor says that they were removed$/,
      ),
    ]);
    for (const change of ["sequence = sequence + 1, rows = rows + 1", "at = at + 1", "chain_hash = null"])
      expect(await breaksAfter((raw) => raw.run(`update audit_anchor set ${change} ${on()}`))).toEqual([
        SEAL,
      ]);
    expect(
      await breaksAfter((raw) =>
        raw.run(
          `update audit_anchor set hash = ${raw.isPostgres ? "substring(hash for 31)" : "substr(hash, 1, 31)"} ${on()}`,
        ),
      ),
    ).toEqual([SEAL]);
    const swap = (from: string, to: string) =>
      `update audit_anchor set organization_id = '${to}' where organization_id = '${from}';`;
    expect(
      await breaksAfter((raw) =>
        raw.run(swap(harbour, "x") + swap(lighthouse, harbour) + swap("x", lighthouse)),
      ),
    ).toEqual([SEAL, SEAL]);
  });

  test("rows behind the anchor went, or one before it is there again, breaks", async () => {
    expect(
      await breaksAfter((raw) => raw.run(`delete from audit_log ${on()} and sequence = ${first}`)),
    ).toEqual(["it is missing"]);
    expect(
      await breaksAfter((raw) =>
        raw.run(`update audit_log set sequence = 1 ${on()} and sequence = ${first}`),
      ),
    ).toEqual([`it exists, although its anchor says that the rows up to ${first - 1} were removed`]);
  });

  test("an organization is gone and its anchor stayed breaks", async () => {
    const problems = await breaksAfter((raw) =>
      raw.run(`delete from audit_log ${on()}; delete from organization where id = '${harbour}'`),
    );
    expect(problems).toContain("the chain belongs to no organization, so its end is unknown");
  });
});
