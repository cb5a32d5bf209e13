import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { sql } from "kysely";
import pg from "pg";
import { asLeader } from "../../src/jobs/job-writes.ts";
import { Batch, type BatchAnswer } from "../../src/store/postgres/batch.ts";
import { prepared } from "../../src/store/prepared.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import type { Reader, Store } from "../../src/store/store.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster, openProcess } from "../harness/postgres-store.ts";
import { until } from "../harness/until.ts";

/*
 * The reads of one turn of the event loop are one batch: where one of them fails, the engine skips those behind it.
 */

let cluster: PostgresCluster;
let url: string;
let store: Store;
beforeAll(async () => {
  cluster = await startPostgres("embedded", ["fsync=off"]);
  url = await emptyDatabase(cluster);
  store = await openProcess(url, { connections: 2 });
});
afterAll(async () => {
  await store?.close();
  await cluster?.stop();
});

/** Returns the quotient of ten, by a statement of its own for each `kind`. */
async function tenBy(db: Reader, divisor: number, kind: number): Promise<number | undefined> {
  const { rows } = await sql<{ quotient: number }>`
    select 10 / ${divisor}::int as quotient, ${sql.lit(kind)} as kind`.execute(builderOf(db));
  return rows[0]?.quotient;
}

const outcomes = async (reads: Promise<unknown>[]) =>
  (await Promise.allSettled(reads)).map((each) =>
    each.status === "fulfilled" ? each.value : (each.reason as Error).message,
  );

test("a read that fails leaves those of the same turn their answers", async () => {
  const divisors = [1, 0, 2, 0, 5, 10];
  const expected = [10, "division by zero", 5, "division by zero", 2, 1];
  // Statements that the connection does not know, in the first round; that it was about to learn, in the second.
  for (let round = 0; round < 3; round++) {
    const reads = divisors.map((divisor, kind) => tenBy(store.reader, divisor, kind));
    expect(await outcomes(reads)).toEqual(expected);
  }
});

test.each([
  ["in the same batch", 0, 100],
  ["in one that is sent before the first is answered", 1, 200],
  ["in one that is sent about when it is answered", 2, 300],
])("what was to be parsed behind a read that failed is parsed for others: %s", async (_, turns, kind) => {
  const reads = [tenBy(store.reader, 0, kind), tenBy(store.reader, 2, kind + 1)];
  const next = async (divisor: number) => {
    for (let turn = 0; turn < turns; turn++) await nextTurn();
    return tenBy(store.reader, divisor, kind + 1);
  };
  expect(await outcomes([...reads, next(5), next(10)])).toEqual(["division by zero", 5, 2, 1]);
  expect(await tenBy(store.reader, 10, kind + 1)).toBe(1);
});

const selectBackend = prepared<{ mark: string }, { pid: number; mark: string }>((db, { mark }) =>
  db
    .selectNoFrom(() => [sql<number>`pg_backend_pid()`.as("pid"), sql<string>`${mark}::text`.as("mark")])
    .limit(1),
);

test("the reads of a turn go through one connection, and each gets its own rows", async () => {
  const marks = Array.from({ length: 30 }, (_, index) => `mark ${index}`);
  const rows = await Promise.all(marks.map((mark) => selectBackend(store.reader, { mark })));
  expect(rows.map(([row]) => row?.mark)).toEqual(marks);
  expect(new Set(rows.map(([row]) => row?.pid)).size).toBe(1);
});

test("a batch lets go of the rows of a statement that has its answer", async () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage: () => void = runInNewContext("gc");
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const batch = new Batch(new Map());
  const rows = ["select 1 as one", "select 2 as two"].map((text) => {
    const { promise, resolve, reject } = Promise.withResolvers<BatchAnswer>();
    batch.add({ text }, resolve, reject);
    return promise.then(({ rows: [row] }) => new WeakRef(row ?? {}));
  });
  client.query(batch);
  const found = await Promise.all(rows);
  await client.end();
  collectGarbage();
  expect({ batch, found: found.map((row) => row.deref()) }).toEqual({ batch, found: [undefined, undefined] });
});

/** Waits until so many statements wait for the lock of {@link waitForLock}. */
const waiting = (count: number) =>
  until(
    () =>
      onCluster(
        url,
        "select count(*)::int as count, array_agg(pid) as pids from pg_locks where locktype = 'advisory' and objid = 77",
      ),
    ({ rows: [found] }) => found?.count === count + 1,
  );

/** A read that waits until nobody holds the lock. */
async function waitForLock(db: Reader): Promise<string> {
  await sql`select pg_advisory_lock_shared(77), pg_advisory_unlock_shared(77)`.execute(builderOf(db));
  return "done";
}

describe("while a read takes long", () => {
  let holder: pg.Client;
  beforeEach(async () => {
    holder = new pg.Client({ connectionString: url });
    await holder.connect();
    await holder.query("select pg_advisory_lock(77)");
  });
  afterEach(() => holder.end());

  test.each<[string, (store: Store) => Reader]>([
    ["reads of a turn", ({ reader }) => reader],
    ["a list", (store) => store.lister({ organizationId: "" })],
    ["a read that may take long", ({ longReader }) => longReader],
    ["a read of a job", (store) => asLeader(store).reader],
  ])("%s on a connection that an administrator ends succeed on another", async (_, readerOf) => {
    // So that the connection is one that was used before.
    expect(await tenBy(readerOf(store), 2, 1_000)).toBe(5);
    const asked = outcomes([waitForLock(readerOf(store)), tenBy(readerOf(store), 2, 1_000)]);
    const { rows } = await waiting(1);
    expect(rows[0]?.pids).toHaveLength(2);
    const others = `pid <> pg_backend_pid() and datname = current_database() and application_name = 'chartroom read'`;
    await onCluster(url, `select pg_terminate_backend(pid) from pg_stat_activity where ${others}`);
    await waiting(1);
    await holder.query("select pg_advisory_unlock(77)");
    expect(await asked).toEqual(["done", 5]);
    expect(await tenBy(store.reader, 2, 1_000)).toBe(5);
  });

  test.each<[string, (store: Store) => Reader]>([
    ["a list", (store) => store.lister({ organizationId: "" })],
    ["a search", (store) => store.searcher({ organizationId: "" })],
    ["a read that may take long", ({ longReader }) => longReader],
    ["a read of a job", (store) => asLeader(store).reader],
  ])("%s delays no short read of the same turn", async (_, readerOf) => {
    const slow = waitForLock(readerOf(store));
    const short = [1, 2, 5].map((divisor) => tenBy(store.reader, divisor, 2_000));
    expect(await Promise.all(short)).toEqual([10, 5, 2]);
    await waiting(1);
    expect(await tenBy(store.reader, 10, 2_000)).toBe(1);
    await holder.query("select pg_advisory_unlock(77)");
    expect(await slow).toBe("done");
  });
});
