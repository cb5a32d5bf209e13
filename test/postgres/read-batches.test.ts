import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { sql } from "kysely";
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

test("all reads of a connection that is ended fail as the engine's, and the next ones succeed", async () => {
  const [row] = await selectBackend(store.reader, { mark: "" });
  const asked = [sql`select pg_sleep(3600)`.execute(builderOf(store.reader)), tenBy(store.reader, 2, 1_000)];
  const outcome = outcomes(asked);
  const sleeping = `select count(*)::int as count from pg_stat_activity where pid = ${row?.pid} and state = 'active'`;
  await until(
    () => onCluster(url, sleeping),
    ({ rows: [found] }) => found?.count === 1,
  );
  await onCluster(url, `select pg_terminate_backend(${row?.pid})`);
  expect(await outcome).toEqual(["the database did not answer", "the database did not answer"]);
  // The socket may tell of its end after the engine has.
  const next = () => tenBy(store.reader, 2, 1_000).catch((error: Error) => error.message);
  expect(await until(next, (answer) => answer !== "the database did not answer")).toBe(5);
});
