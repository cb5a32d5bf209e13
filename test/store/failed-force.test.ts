import { join } from "node:path";
import { afterAll, beforeEach, expect } from "@jest/globals";
import Database from "better-sqlite3";
import { builderOf } from "../../src/store/query-builder.ts";
import { DATABASE_FILE } from "../../src/store/sqlite/open.ts";
import { type Store, SYSTEM } from "../../src/store/store.ts";
import { endNodes, startFile } from "../harness/node-process.ts";
import { testWithSlowDisk } from "../harness/own-disk.ts";
import { stopAll } from "../harness/server.ts";
import type { SlowDisk } from "../harness/slow-disk.ts";
import { expectWholeRecord, factsIn, ONE, openAt, openWithOrganizations, TWO } from "./made-up-changes.ts";

let dataDir: string;

beforeEach(async () => {
  const made = await openWithOrganizations();
  dataDir = made.dataDir;
  await made.store.close();
});
afterAll(async () => {
  await endNodes();
  await stopAll();
});

function startWriter(disk: SlowDisk) {
  const node = startFile(join(import.meta.dirname, "writing-process.ts"), [dataDir, ONE], disk.env);
  return {
    ...node,
    write(names: readonly string[], bytes = 0): Promise<unknown> {
      node.send(JSON.stringify({ names, bytes }));
      return node.next();
    },
  };
}

const PROBLEM = "the disk of the data folder fails";
const FAILED = ["StoreUnavailable", PROBLEM, "SQLITE_IOERR_FSYNC"];
const taken = (names: readonly string[], found: readonly string[]) => ({
  answers: names.map(() => "taken"),
  areListenersCalled: true,
  found,
});

testWithSlowDisk(
  "writes whose commit cannot be forced fail as unavailable, and nobody sees any of them",
  async (disk) => {
    const writer = startWriter(disk);
    expect(await writer.write(["a"])).toEqual(taken(["a"], ["a"]));
    disk.failFor("-wal");
    expect(await writer.write(["b", "c", "d"])).toEqual({
      answers: [FAILED, FAILED, FAILED],
      areListenersCalled: false,
      problem: PROBLEM,
      afterProbe: PROBLEM,
      found: ["a"],
    });
    const reader = new Database(join(dataDir, DATABASE_FILE), { readonly: true });
    expect(reader.prepare("select name from fact").pluck().all()).toEqual(["a"]);
    reader.close();
    disk.restore();
    expect(await writer.write(["c", "e"])).toEqual({
      ...taken(["c", "e"], ["a", "c", "e"]),
      problem: PROBLEM,
    });
    await writer.kill();
    const store = openAt(dataDir);
    expect(await factsIn(store)).toEqual(["a", "c", "e"]);
    await expectWholeRecord(store, { [ONE]: ["a", "c", "e"], [TWO]: [] });
    await store.close();
  },
);

testWithSlowDisk(
  "a commit that could not be forced is there wholly or not at all after a kill",
  async (disk) => {
    const writer = startWriter(disk);
    await writer.write(["a"]);
    disk.failFor("-wal");
    await writer.write(["b", "c"]);
    await writer.kill();
    disk.restore();
    const store = openAt(dataDir);
    const facts = await factsIn(store);
    expect([["a"], ["a", "b", "c"]]).toContainEqual(facts);
    // The start has copied the log into the file, whose force is worth something.
    const reader = new Database(join(dataDir, DATABASE_FILE), { readonly: true });
    reader.prepare("select 1 from fact").get();
    const [pass] = reader.pragma("wal_checkpoint(NOOP)") as [{ log: number; checkpointed: number }];
    expect(pass.log).toBeGreaterThan(0);
    expect(pass.checkpointed).toBe(pass.log);
    reader.close();
    await store.write(SYSTEM, "test", async (tx) => {
      await builderOf(tx.db).insertInto("fact").values({ name: "d", value: "" }).execute();
    });
    await expectWholeRecord(store, { [ONE]: facts, [TWO]: [] });
    await store.close();
  },
);

testWithSlowDisk("a checkpoint that cannot be forced ends the process, and nothing is lost", async (disk) => {
  const writer = startWriter(disk);
  disk.failFor(DATABASE_FILE);
  const facts: string[] = [];
  const fill = async () => {
    for (;;) {
      const name = `fact ${String(facts.length).padStart(4, "0")}`;
      await writer.write([name], 1_000_000);
      facts.push(name);
    }
  };
  await expect(fill()).rejects.toThrow("the disk did not take what was copied into the database file");
  expect(facts.length).toBeGreaterThan(0);
  disk.restore();
  const store = openAt(dataDir);
  expect(await factsIn(store)).toEqual(expect.arrayContaining(facts));
  await store.close();
});

testWithSlowDisk("a merge of the index that cannot be forced is made again later", async (disk) => {
  const enter = async (store: Store, rows: readonly number[]) => {
    for (const row of rows) {
      await store.write(SYSTEM, "test", async (tx) => tx.indexText({ organizationId: ONE }, `text ${row}`));
    }
  };
  // Two stores, neither of which enters as many as it would merge itself.
  const before = openAt(dataDir);
  await enter(before, [1, 2, 3, 4]);
  await before.close();
  const store = openAt(dataDir);
  await enter(store, [5, 6, 7, 8]);
  const file = join(import.meta.dirname, "merging-process.ts");
  const merger = startFile(file, [join(dataDir, DATABASE_FILE)], disk.env);
  disk.failFor("-wal");
  merger.send("merge");
  expect(await merger.next()).toBeNull();
  disk.restore();
  merger.send("merge");
  expect(await merger.next()).toEqual({ hasMerged: true });
  await merger.kill();
  await store.close();
});
