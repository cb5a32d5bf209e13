import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, afterEach, beforeEach, expect, test } from "@jest/globals";
import Database from "better-sqlite3";
import { DATABASE_FILE } from "../../src/store/sqlite/open.ts";
import { type Store, SYSTEM } from "../../src/store/store.ts";
import { testOnSqlite } from "../harness/engine.ts";
import { postgresUrl } from "../harness/postgres-database.ts";
import { stopAll } from "../harness/server.ts";
import { factsIn, openAt, openWithOrganizations, put } from "./made-up-changes.ts";

let dataDir: string;
let store: Store;
beforeEach(async () => {
  ({ dataDir, store } = await openWithOrganizations());
});
afterEach(() => store.close());
afterAll(stopAll);

const isPostgres = postgresUrl() !== undefined;

testOnSqlite("it reads within one turn of the event loop")(
  "reads of one turn see one state, those of the next what another process has committed",
  async () => {
    const other = new Database(join(dataDir, DATABASE_FILE));
    await nextTurn();
    expect(await factsIn(store)).toEqual([]);
    other.exec("insert into fact (name, value) values ('theirs', '')");
    other.close();
    expect(await factsIn(store)).toEqual([]);
    await nextTurn();
    expect(await factsIn(store)).toEqual(["theirs"]);
  },
);

testOnSqlite("it reads within one turn of the event loop")(
  "what arrives after a commit of another process sees it, though an immediate was reading the state before",
  async () => {
    const other = new Database(join(dataDir, DATABASE_FILE));
    const [near, far] = await socketPair();
    await nextTurn();
    expect(await factsIn(store)).toEqual([]);
    other.exec("insert into fact (name, value) values ('theirs', '')");
    other.close();
    near.write("read it");
    await once(far, "data");
    expect(await factsIn(store)).toEqual(["theirs"]);
    near.destroy();
    far.destroy();
  },
);

/** Returns both ends of a connection within this process. */
async function socketPair(): Promise<readonly [Socket, Socket]> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const near = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [far] = await once(server, "connection");
  server.close();
  return [near, far];
}

test.each([
  { how: "in a group", options: {} },
  ...(isPostgres ? [] : [{ how: "in a commit of its own", options: { grouping: false } }]),
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

test("a listener sees what the commit that it is called for changed", async () => {
  const seen: Promise<string[]>[] = [];
  store.onCommit(() => seen.push(factsIn(store)));
  for (const names of [["a"], ["a", "b"]]) {
    await factsIn(store);
    seen.length = 0;
    await store.write(SYSTEM, "test", (tx) => put(tx, names.at(-1) ?? ""));
    expect(await seen.at(-1)).toEqual(names);
  }
});
