import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { keysFrom } from "../../src/keys.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { verifyChains } from "../../src/store/record/audit-chain.ts";
import { type Store, StoreUnavailable, SYSTEM, type WriteTransaction } from "../../src/store/store.ts";
import type { WriteBackRow } from "../../src/store/write-back-row.ts";
import { openReadOnlyData } from "../harness/read-only-data.ts";
import {
  auditOf,
  change,
  eventsOf,
  expectWholeRecord,
  ONE,
  openWithOrganizations,
  put,
  TWO,
} from "./made-up-changes.ts";

let dataDir: string;
let store: Store;
/** What became of the held row, in order: `read quay` and `write quay 3`. */
let accesses: string[];

/** A number in the row of a fact. */
const COUNT: WriteBackRow<string, number> = {
  async read(db, name) {
    accesses.push(`read ${name}`);
    const row = await builderOf(db)
      .selectFrom("fact")
      .select("value")
      .where("name", "=", name)
      .executeTakeFirst();
    return Number(row?.value ?? 0);
  },
  async write(db, name, count) {
    accesses.push(`write ${name} ${count}`);
    if (count > 1_000) throw new Error("the count is too high for its row");
    const value = String(count);
    await builderOf(db)
      .insertInto("fact")
      .values({ name, value })
      .onConflict((conflict) => conflict.column("name").doUpdateSet({ value }))
      .execute();
  },
};

beforeEach(async () => {
  ({ dataDir, store } = await openWithOrganizations());
  accesses = [];
});
afterEach(() => store.close());

async function count(tx: WriteTransaction, name: string, by = 1): Promise<number> {
  const next = (await tx.readWriteBack(COUNT, name)) + by;
  tx.setWriteBack(COUNT, name, next);
  return next;
}

const counted = (name: string, by?: number) => store.write(SYSTEM, "test", (tx) => count(tx, name, by));
const stored = () =>
  builderOf(store.reader).selectFrom("fact").select(["name", "value"]).orderBy("name").execute();

test("changes that share a commit read a row once and write it once, each from where the one before left it", async () => {
  expect(await Promise.all([counted("quay"), counted("mole"), counted("quay"), counted("quay")])).toEqual([
    1, 1, 2, 3,
  ]);
  expect(accesses).toEqual(["read quay", "read mole", "write quay 3", "write mole 1"]);
  expect(await stored()).toEqual([
    { name: "mole", value: "1" },
    { name: "quay", value: "3" },
  ]);
});

test("the next commit begins with what the table holds", async () => {
  await counted("quay");
  accesses = [];
  expect(await counted("quay")).toBe(2);
  expect(accesses).toEqual(["read quay", "write quay 2"]);
});

test("a change that fails moves nothing on, and one after it goes on from the one before it", async () => {
  const results = await Promise.allSettled([
    counted("quay", 5),
    store.write(SYSTEM, "test", async (tx) => {
      await count(tx, "quay", 10);
      await count(tx, "quay", 10);
      await count(tx, "mole", 10);
      throw new Error("after all of it");
    }),
    counted("quay"),
  ]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(results[2]).toMatchObject({ value: 6 });
  expect(await stored()).toEqual([{ name: "quay", value: "6" }]);
});

test("a part that fails goes back to where it began, with the parts that it holds", async () => {
  await store.write(SYSTEM, "test", async (tx) => {
    await count(tx, "quay");
    const outer = tx.attempt(async () => {
      await tx.attempt(() => count(tx, "quay"));
      await count(tx, "mole");
      throw new Error("in the part");
    });
    await expect(outer).rejects.toThrow("in the part");
    await tx.attempt(() => count(tx, "quay"));
  });
  expect(await stored()).toEqual([{ name: "quay", value: "2" }]);
});

test("a row that does not take its value fails the commit, and the next one knows nothing of it", async () => {
  const results = await Promise.allSettled([
    counted("quay"),
    counted("mole", 1_001),
    store.write(SYSTEM, "test", (tx) => put(tx, "fact")),
  ]);
  for (const result of results) {
    expect(result).toMatchObject({ status: "rejected", reason: expect.any(StoreUnavailable) });
  }
  expect(await stored()).toEqual([]);
  await expectWholeRecord(store, { [ONE]: [], [TWO]: [] });
  expect(await counted("quay")).toBe(1);
  await store.write(SYSTEM, "test", (tx) => put(tx, "fact"));
  await expectWholeRecord(store, { [ONE]: ["fact"], [TWO]: [] });
});

test("a read has a number among the changes of its commit, and no event", async () => {
  const kinds = ["created", "read", "updated", "read", "deleted"] as const;
  await Promise.all(
    kinds.map((kind) => store.write(SYSTEM, "test", async (tx) => tx.record({ ...change(ONE, kind), kind }))),
  );
  const audit = await auditOf(store, ONE);
  expect(audit.map((row) => [row.sequence, row.subject_id])).toEqual([
    [1, ONE],
    ...kinds.map((kind, index) => [index + 2, kind]),
  ]);
  const events = await eventsOf(store, ONE);
  expect(events.map((row) => [row.sequence, row.kind])).toEqual([
    [1, "created"],
    [2, "created"],
    [4, "updated"],
    [6, "deleted"],
  ]);
});

test("two who ask for a row at the same time get the same value, and none that was set meanwhile is lost", async () => {
  await store.write(SYSTEM, "test", async (tx) => {
    const slow = tx.readWriteBack(COUNT, "quay");
    tx.setWriteBack(COUNT, "quay", 7);
    expect(await slow).toBe(7);
  });
  expect(await stored()).toEqual([{ name: "quay", value: "7" }]);
});

test("chains hold over changes that fail at a later one of their records", async () => {
  const nobody = "0192d3c0-0000-7000-8000-00000000dead";
  const results = await Promise.allSettled(
    Array.from({ length: 60 }, (_, index) =>
      store.write(SYSTEM, "test", async (tx) => {
        tx.record(change(ONE, `${index} of one`));
        tx.record({ ...change(ONE, `${index} above`), organizationId: null });
        tx.record(change(TWO, `${index} of two`));
        if (index % 3 === 0) tx.record(change(nobody, `${index} of nobody`));
      }),
    ),
  );
  expect(results.filter(({ status }) => status === "rejected")).toHaveLength(20);
  const kept = Array.from({ length: 60 }, (_, index) => index).filter((index) => index % 3 !== 0);
  await expectWholeRecord(store, {
    [ONE]: kept.map((index) => `${index} of one`),
    [TWO]: kept.map((index) => `${index} of two`),
  });
  const { auditMac } = keysFrom(new Uint8Array(32).fill(7));
  const copy = await openReadOnlyData(dataDir);
  const reports = await verifyChains(copy.reader, auditMac);
  await copy.close();
  expect(reports.map(({ organizationId, rows, broken }) => [organizationId, rows, broken])).toEqual([
    [null, 42, undefined],
    [ONE, 41, undefined],
    [TWO, 41, undefined],
  ]);
});
