import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, afterEach, beforeEach, expect, test } from "@jest/globals";
import Database from "better-sqlite3";
import { DATABASE_FILE } from "../../src/store/sqlite/open.ts";
import { type Store, SYSTEM } from "../../src/store/store.ts";
import { stopAll } from "../harness/server.ts";
import { factsIn, openAt, openWithOrganizations, put } from "./made-up-changes.ts";

let dataDir: string;
let store: Store;
let other: Database.Database;

beforeEach(async () => {
  ({ dataDir, store } = await openWithOrganizations());
  other = new Database(join(dataDir, DATABASE_FILE));
});
afterEach(async () => {
  other.close();
  await store.close();
});
afterAll(stopAll);

const putByOther = (name: string) => other.prepare("insert into fact (name, value) values (?, '')").run(name);

test("reads of one turn see one state, those of the next what another process has committed", async () => {
  await nextTurn();
  expect(await factsIn(store)).toEqual([]);
  putByOther("theirs");
  expect(await factsIn(store)).toEqual([]);
  await nextTurn();
  expect(await factsIn(store)).toEqual(["theirs"]);
});

test.each([
  { how: "in a group", options: {} },
  { how: "in a commit of its own", options: { grouping: false } },
])("a read sees a write of this process $how as soon as it is answered", async ({ options }) => {
  await store.close();
  store = openAt(dataDir, options);
  const seen: string[][] = [];
  for (const name of ["a", "b", "c"]) {
    expect(await factsIn(store)).not.toContain(name);
    await store
      .write(SYSTEM, "test", (tx) => put(tx, name))
      .then(async () => seen.push(await factsIn(store)));
  }
  expect(seen).toEqual([["a"], ["a", "b"], ["a", "b", "c"]]);
});

test("a listener sees what the commit that it is told of changed", async () => {
  const seen: Promise<string[]>[] = [];
  store.onCommit(() => seen.push(factsIn(store)));
  for (const name of ["a", "b"]) {
    await factsIn(store);
    await store.write(SYSTEM, "test", (tx) => put(tx, name));
  }
  expect(await Promise.all(seen)).toEqual([["a"], ["a", "b"]]);
});
