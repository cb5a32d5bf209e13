import { afterAll, afterEach, beforeEach, expect, test } from "@jest/globals";
import { type Store, SYSTEM, type WriteTransaction } from "../../src/store/store.ts";
import { stopAll } from "../harness/server.ts";
import { auditOf, change, factsIn, ONE, openAt, openWithOrganizations, put } from "./made-up-changes.ts";

/** More rows than any machine writes before it pauses three times. */
const MANY = 30_000;
const PAUSES = 3;
/** As long as a write that does nothing is let be, and a little more. */
const STUCK_MS = 2_100;

let store: Store;
/** Turns of the event loop that others had. */
let turns: number;
let turnsBeforeCommit: number;
let ticking: boolean;
beforeEach(async () => {
  const { dataDir, store: first } = await openWithOrganizations();
  await first.close();
  store = openAt(dataDir);
  // At once: nobody has a turn while a write is committed.
  store.onCommit(() => {
    turnsBeforeCommit = turns;
  });
  ticking = true;
  tick();
  turns = 0;
});
afterEach(async () => {
  ticking = false;
  await store.close();
});
afterAll(stopAll);

function tick(): void {
  turns += 1;
  if (ticking) setImmediate(tick);
}

/** Writes rows until others had a few turns; at most so many. */
async function untilPaused(tx: WriteTransaction): Promise<number> {
  const begin = turns;
  let rows = 0;
  while (turns < begin + PAUSES && rows < MANY) await put(tx, `row ${rows++}`);
  return rows;
}

test("a write of many rows lets reads go on, which see nothing of it, and keeps other writes for its end", async () => {
  const seen: string[][] = [];
  let over = false;
  const readOn = async () => {
    while (!over) {
      const facts = await factsIn(store);
      if (!over) seen.push(facts);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const order: string[] = [];
  const writing = store.write(SYSTEM, "test", async (tx) => {
    const begin = turns;
    const rows = await untilPaused(tx);
    order.push("long");
    expect(turns - begin).toBeGreaterThanOrEqual(PAUSES);
    over = true;
    return rows;
  });
  const reading = readOn();
  const behind = store.write(SYSTEM, "test", async (tx) => {
    order.push("behind");
    return put(tx, "behind");
  });
  const [rows] = await Promise.all([writing, reading, behind]);
  expect(seen.length).toBeGreaterThanOrEqual(PAUSES);
  expect(seen.flat()).toEqual([]);
  expect(order).toEqual(["long", "behind"]);
  expect(await factsIn(store)).toHaveLength(rows + 1);
});

test("the record of many changes is written with pauses, too", async () => {
  const changes = 10_000;
  let turnsAtEnd = 0;
  await store.write(SYSTEM, "test", async (tx) => {
    for (let index = 0; index < changes; index += 1) tx.record(change(ONE, `change ${index}`));
    turnsAtEnd = turns;
  });
  expect(turnsBeforeCommit - turnsAtEnd).toBeGreaterThanOrEqual(PAUSES);
  expect(await auditOf(store, ONE)).toHaveLength(changes + 1);
});

test("a write that pauses outlasts a machine that stalls in its pause", async () => {
  let stalledMs = 0;
  const rows = await store.write(SYSTEM, "test", async (tx) => {
    const stall = () => {
      const began = performance.now();
      while (stalledMs < STUCK_MS) stalledMs = performance.now() - began;
    };
    // Behind the end of a pause, so that the write is in the next one by then, and the loop is about to look at its timers.
    setTimeout(() => setImmediate(stall), 0);
    return untilPaused(tx);
  });
  expect(stalledMs).toBeGreaterThan(STUCK_MS - 1);
  expect(await factsIn(store)).toHaveLength(rows);
});

test("a write that pauses may still not wait for anything else", async () => {
  const write = store.write(SYSTEM, "test", async (tx) => {
    // Into another turn of the loop, which a timer alone may not be on a slow machine.
    await new Promise((resolve) => setTimeout(() => setImmediate(resolve), 1));
    await untilPaused(tx);
  });
  await expect(write).rejects.toThrow("awaited something other than its own queries");
  expect(await factsIn(store)).toEqual([]);
});
