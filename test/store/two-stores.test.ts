import { afterAll, afterEach, beforeEach, expect, test } from "@jest/globals";
import { type Store, SYSTEM } from "../../src/store/store.ts";
import { testOnSqlite } from "../harness/engine.ts";
import { stopAll } from "../harness/server.ts";
import { expectWholeRecord, factsIn, ONE, openAt, openWithOrganizations, put } from "./made-up-changes.ts";

/** More rows than any machine writes before it has paused so often. */
const MANY = 30_000;
/** Until then the one that began at the first has asked for the lock. */
const PAUSES = 4;

let dataDir: string;
let store: Store;
beforeEach(async () => {
  ({ dataDir, store } = await openWithOrganizations());
});
afterEach(() => store.close());
afterAll(stopAll);

/** Writes rows until it has paused a few times; calls `meanwhile` in the first pause. */
function writeLong(meanwhile: () => void): Promise<string[]> {
  let turns = 0;
  const tick = () => {
    turns += 1;
    if (turns === 1) meanwhile();
    if (turns < PAUSES) setImmediate(tick);
  };
  return store.write(SYSTEM, "test", async (tx) => {
    setImmediate(tick);
    const names: string[] = [];
    while (turns < PAUSES && names.length < MANY) names.push(await put(tx, `row ${names.length}`));
    expect(turns).toBe(PAUSES);
    return names;
  });
}

test("two stores of one process that write at once both succeed", async () => {
  const other = openAt(dataDir);
  let behind: Promise<string> | undefined;
  const names = await writeLong(() => {
    behind = other.write(SYSTEM, "test", (tx) => put(tx, "behind"));
  });
  expect(await behind).toBe("behind");
  expect(await factsIn(store)).toEqual(["behind", ...names].toSorted());
  await expectWholeRecord(other, { [ONE]: [...names, "behind"] });
  await other.close();
});

testOnSqlite("its one writer pauses, counted in turns of the event loop")(
  "a store is opened and closed while another one of the process is writing",
  async () => {
    let seen: Promise<string[]> | undefined;
    await writeLong(() => {
      const other = openAt(dataDir);
      seen = factsIn(other).finally(() => other.close());
    });
    expect(await seen).toEqual([]);
  },
);
