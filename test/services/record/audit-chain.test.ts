import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { keysFrom } from "../../../src/keys.ts";
import { verifyChains } from "../../../src/store/record/audit-chain.ts";
import { diffOf } from "../../../src/store/record/packed-diff.ts";
import type { AuditLogTable } from "../../../src/store/record/record-schema.ts";
import { copyData, dropData } from "../../harness/data-config.ts";
import { type RawData, tampering, withRawData } from "../../harness/raw-data.ts";
import { openReadOnlyData } from "../../harness/read-only-data.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { servicesOf } from "../services.ts";

let testStore: TestStore;
let harbour: string;
let lighthouse: string;
const folders: string[] = [];

beforeAll(async () => {
  testStore = openTestStore();
  const caller = await testStore.createOrganization("harbour");
  harbour = caller.organizationId;
  lighthouse = (await testStore.createOrganization("lighthouse")).organizationId;
  const own = servicesOf(testStore, caller);
  for (const name of ["one", "two", "three"]) await own.project(name);
  // A copy is made of what nobody uses.
  await testStore.store.close();
});
afterAll(async () => {
  for (const folder of [testStore.dataDir, ...folders]) {
    rmSync(folder, { recursive: true });
    await dropData(folder);
  }
});

/** What is done to a copy, as an attacker with the file or the database's password would. */
type Attack = (raw: RawData) => Promise<unknown>;

/** What is found in a copy that was attacked. */
async function verifyAfter(attack: Attack, keys = testStore.keys) {
  const folder = mkdtempSync(join(tmpdir(), "chartroom-copy-"));
  folders.push(folder);
  copyData(testStore.dataDir, folder);
  await tampering(folder, attack);
  const copy = await openReadOnlyData(folder);
  try {
    return await verifyChains(copy.reader, (keyId, bytes) =>
      keys.ids.includes(keyId) ? keys.auditMac(keyId, bytes) : undefined,
    );
  } finally {
    await copy.close();
  }
}

const unchanged: Attack = async () => undefined;

/** The breaks as [chain, sequence, problem]. */
async function breaksAfter(attack: Attack, keys = testStore.keys) {
  const names = new Map([
    [null, "installation"],
    [harbour, "harbour"],
    [lighthouse, "lighthouse"],
  ] as const);
  return (await verifyAfter(attack, keys)).flatMap(({ organizationId, broken }) =>
    broken ? [[names.get(organizationId), broken.sequence, broken.problem]] : [],
  );
}

const of = (sequence: number) => `where organization_id = '${harbour}' and sequence = ${sequence}`;
const lastOf = async (raw: RawData): Promise<number> => {
  const newest = "select max(sequence) as sequence from audit_log where organization_id = ?";
  const [row] = await raw.rows<{ sequence: number }>(newest, harbour);
  return row?.sequence ?? 0;
};
/** Returns the number of the first row of the chain whose diff is packed. */
async function firstPacked(): Promise<number> {
  const first =
    "select min(sequence) as sequence from audit_log where organization_id = ? and packed_diff is not null";
  const [row] = await withRawData(testStore.dataDir, (raw) => raw.rows<{ sequence: number }>(first, harbour));
  return Number(row?.sequence ?? Number.NaN);
}

type StoredDiff = Pick<AuditLogTable, "organization_id" | "sequence" | "diff" | "packed_diff"> & {
  readonly hash: Uint8Array;
};

/** Bytes in the engine's words. */
const zeros = (raw: RawData) => (raw.isPostgres ? "decode(repeat('00', 32), 'hex')" : "zeroblob(32)");

describe("the chains of a store", () => {
  test("hold for each organization and for the installation, from the first row to the head", async () => {
    const reports = await verifyAfter(unchanged);
    expect(reports.map(({ organizationId }) => organizationId)).toEqual([null, harbour, lighthouse]);
    for (const { rows, validRows, unhashed, broken } of reports) {
      expect([validRows, unhashed, broken]).toEqual([rows, 0, undefined]);
      expect(rows).toBeGreaterThanOrEqual(2);
    }
  });

  test("record an account in the installation's chain, once, and its membership in the organization's", async () => {
    const rows = await withRawData(testStore.dataDir, (raw) =>
      raw.rows(`select organization_id, subject_type, sequence from audit_log
        where subject_type in ('account', 'member') order by sequence`),
    );
    expect(rows.filter(({ subject_type }) => subject_type === "account")).toEqual([
      { organization_id: null, subject_type: "account", sequence: 1 },
      { organization_id: null, subject_type: "account", sequence: 3 },
    ]);
    expect(
      rows.flatMap((row) => (row.subject_type === "member" ? [row.organization_id] : [])).toSorted(),
    ).toEqual([harbour, lighthouse].toSorted());
  });
});

describe("the triggers", () => {
  test.each([
    ["update audit_log set reason = 'x'", "audit rows are never changed"],
    ["delete from audit_log", "audit rows are never removed"],
    ["update event set kind = 'x'", "event rows are never changed"],
    ["delete from event", "event rows are removed by the pruning job only"],
  ])("refuse: %s", async (statement, message) => {
    await withRawData(testStore.dataDir, (raw) => expect(raw.run(statement)).rejects.toThrow(message));
  });
});

describe("a copy in which", () => {
  test.each([
    ["id", "id || 'x'"],
    ["at", "at + 1"],
    ["actor_id", "'somebody'"],
    ["actor_principal", "actor_principal + 1"],
    ["operation", "operation || 'x'"],
    ["subject_type", "'project_'"],
    ["subject_id", "'other'"],
    ["reason", "'because'"],
    ["diff", "'{}'"],
    ["hash", zeros],
  ])("the column %s of a row was changed breaks at that row", async (column, value) => {
    const breaks = await breaksAfter((raw) =>
      raw.run(`update audit_log set ${column} = ${typeof value === "string" ? value : value(raw)} ${of(3)}`),
    );
    expect(breaks).toEqual([["harbour", 3, "it was changed: its content does not match its hash"]]);
  });

  test("what is packed of a row was changed breaks at that row", async () => {
    const packed = await firstPacked();
    const other = `(select packed_diff from audit_log where packed_diff is not null
      and (organization_id is null or sequence <> ${packed}) limit 1)`;
    for (const [column, value] of [
      ["packed_diff", () => other],
      ["packed_diff", zeros],
      ["packed_diff", () => "null"],
      ["diff", () => "'{}'"],
    ] as const) {
      const breaks = await breaksAfter((raw) =>
        raw.run(`update audit_log set ${column} = ${value(raw)} ${of(packed)}`),
      );
      expect(breaks).toEqual([["harbour", packed, "it was changed: its content does not match its hash"]]);
    }
  });

  test("rows are as earlier releases wrote them holds", async () => {
    const reports = await verifyAfter(async (raw) => {
      const rows = await raw.rows<StoredDiff>(
        "select organization_id, sequence, diff, packed_diff, hash from audit_log order by sequence",
      );
      for (const { organization_id, sequence, hash, ...columns } of rows) {
        const chain = organization_id === null ? "is null" : `= '${organization_id}'`;
        const diff = diffOf(columns).replaceAll("'", "''");
        await raw.run(`update audit_log set diff = '${diff}', packed_diff = null
          where organization_id ${chain} and sequence = ${sequence}`);
        const bytes = Buffer.from(hash).toString("hex");
        await raw.run(`update audit_log
          set previous_hash = ${raw.isPostgres ? `decode('${bytes}', 'hex')` : `x'${bytes}'`}
          where organization_id ${chain} and sequence = ${sequence + 1}`);
      }
    });
    for (const { rows, validRows, broken } of reports) expect([validRows, broken]).toEqual([rows, undefined]);
  });

  test("a row names another key breaks at that row", async () => {
    expect(await breaksAfter((raw) => raw.run(`update audit_log set key_id = 'other' ${of(3)}`))).toEqual([
      ["harbour", 3, "it was made with the key other, which is not in the key file"],
    ]);
  });

  test("a row names another predecessor breaks at that row", async () => {
    expect(
      await breaksAfter((raw) => raw.run(`update audit_log set previous_hash = ${zeros(raw)} ${of(3)}`)),
    ).toEqual([["harbour", 3, "the hash of the row before it is not the one that it names"]]);
  });

  test("a row lost its hash breaks at that row", async () => {
    expect(
      await breaksAfter((raw) =>
        raw.run(`update audit_log set hash = null, previous_hash = null, key_id = null ${of(3)}`),
      ),
    ).toEqual([["harbour", 3, "it has no hash, although the rows before it or parts of it do"]]);
  });

  test("rows are gone breaks where they were", async () => {
    expect(await breaksAfter((raw) => raw.run(`delete from audit_log ${of(3)}`))).toEqual([
      ["harbour", 3, "it is missing"],
    ]);
    expect(
      await breaksAfter((raw) => raw.run(`delete from audit_log ${of(3)}; delete from audit_log ${of(4)}`)),
    ).toEqual([["harbour", 3, "the rows from here to 4 are missing"]]);
  });

  test("a row is gone and the others moved up breaks at the first that moved", async () => {
    const [[chain, sequence] = []] = await breaksAfter(async (raw) => {
      await raw.run(`delete from audit_log ${of(3)}`);
      const last = await lastOf(raw);
      for (let next = 4; next <= last; next++)
        await raw.run(`update audit_log set sequence = ${next - 1} ${of(next)}`);
    });
    expect([chain, sequence]).toEqual(["harbour", 3]);
  });

  test("two rows changed places breaks at the first of them", async () => {
    const [[chain, sequence] = []] = await breaksAfter(async (raw) => {
      await raw.run(`update audit_log set sequence = -1 ${of(3)}`);
      await raw.run(`update audit_log set sequence = 3 ${of(4)}`);
      await raw.run(`update audit_log set sequence = 4 ${of(-1)}`);
    });
    expect([chain, sequence]).toEqual(["harbour", 3]);
  });

  test("a row went over to another organization breaks both chains", async () => {
    const breaks = await breaksAfter(async (raw) => {
      const next = `(select max(sequence) + 1 from audit_log where organization_id = '${lighthouse}')`;
      await raw.run(
        `update audit_log set organization_id = '${lighthouse}', sequence = ${next} ${of(await lastOf(raw))}`,
      );
    });
    expect(breaks.map(([chain]) => chain)).toEqual(["harbour", "lighthouse"]);
  });

  test("the tail was cut breaks behind the last row that is left", async () => {
    let last = 0;
    const breaks = await breaksAfter(async (raw) => {
      last = await lastOf(raw);
      await raw.run(`delete from audit_log ${of(last)}`);
    });
    expect(breaks).toEqual([["harbour", last, "it is missing at the end of the chain"]]);
  });

  test("the tail was cut and the head's number set back breaks at the head's hash", async () => {
    let last = 0;
    const breaks = await breaksAfter(async (raw) => {
      last = await lastOf(raw);
      await raw.run(`delete from audit_log ${of(last)}`);
      await raw.run(`update organization set sequence = ${last - 1} where id = '${harbour}'`);
    });
    expect(breaks).toEqual([
      ["harbour", last - 1, "its hash is not the one that the head of the chain names"],
    ]);
  });

  test("the installation's rows were removed breaks that chain alone", async () => {
    expect(
      await breaksAfter((raw) => raw.run("delete from audit_log where organization_id is null")),
    ).toEqual([["installation", 1, "the rows from here to 4 are missing at the end of the chain"]]);
  });

  test("rows were written with another server's key breaks at the first of them", async () => {
    const breaks = await breaksAfter(unchanged, keysFrom(new Uint8Array(32).fill(8)));
    expect(breaks.map(([chain, sequence]) => [chain, sequence])).toEqual([
      ["installation", 1],
      ["harbour", 1],
      ["lighthouse", 1],
    ]);
  });

  test("rows of the first release come before the hashed ones holds, and says how many", async () => {
    const reports = await verifyAfter(async (raw) => {
      await raw.run(`update audit_log set hash = null, previous_hash = null, key_id = null
        where organization_id = '${lighthouse}'`);
      await raw.run(`update organization set chain_hash = null where id = '${lighthouse}'`);
    });
    const { rows, validRows, unhashed, broken, hash } = reports[2] ?? {};
    expect([validRows, unhashed, hash, broken]).toEqual([rows, rows, null, undefined]);
  });
});
