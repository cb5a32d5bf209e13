import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { sql } from "kysely";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { SearchTooLong } from "../../src/domain/error.ts";
import { presentDeadline, withDeadline } from "../../src/rpc/deadline.ts";
import { openPool } from "../../src/store/postgres/connection.ts";
import { readFrom } from "../../src/store/postgres/pipelines.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { type Reader, type Store, SYSTEM, within } from "../../src/store/store.ts";
import {
  holdLocks,
  makeOrganization,
  nameOf,
  rename,
  untilWaiting,
} from "../harness/locked-organizations.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster, openProcess } from "../harness/postgres-store.ts";
import { until } from "../harness/until.ts";

let cluster: PostgresCluster;
let url: string;
let store: Store;
beforeAll(async () => {
  cluster = await startPostgres("embedded", ["fsync=off"]);
  url = await emptyDatabase(cluster);
  store = await openProcess(url, { connections: 3, deadline: presentDeadline, groupMs: 60_000 });
});
afterAll(async () => {
  await store?.close();
  await cluster?.stop();
});

const LATE = { reason: ErrorReason.DEADLINE_EXCEEDED };

const settingOf = async (db: Reader, name: "lock_timeout" | "statement_timeout") =>
  (await sql<{ value: string }>`select current_setting(${name}) as value`.execute(builderOf(db))).rows[0]
    ?.value;

const sleep = (db: Reader) => sql`select pg_sleep(3600)`.execute(builderOf(db));

describe("a write that waits for its locks", () => {
  test("leaves as soon as its caller does, and has begun nothing", async () => {
    const scope = await makeOrganization(store);
    const held = await holdLocks(url, [scope.organizationId]);
    const leaving = new AbortController();
    const first = store.write(SYSTEM, "test", async () => "first", within(scope));
    const second = store.write(SYSTEM, "test", (tx) => rename(tx, scope, "late"), {
      ...within(scope),
      signal: leaving.signal,
    });
    await untilWaiting(url, 1);
    leaving.abort(new Error("left"));
    await expect(second).rejects.toThrow("left");
    await held.release();
    expect(await first).toBe("first");
    expect(await nameOf(store.reader, scope)).toBe(scope.organizationId);
  });

  test("waits until the deadline of its caller, and no transaction waits any more", async () => {
    const scope = await makeOrganization(store);
    const held = await holdLocks(url, [scope.organizationId]);
    const late = withDeadline(300, () =>
      store.write(SYSTEM, "test", (tx) => rename(tx, scope, "late"), within(scope)),
    );
    await expect(late).rejects.toMatchObject(LATE);
    await untilWaiting(url, 0);
    await held.release();
    expect(await nameOf(store.reader, scope)).toBe(scope.organizationId);
  });

  test("does not give up with one that waits less long", async () => {
    const scope = await makeOrganization(store);
    const held = await holdLocks(url, [scope.organizationId]);
    const write = () => store.write(SYSTEM, "test", ({ db }) => settingOf(db, "lock_timeout"), within(scope));
    // Long enough to be seen waiting, and less than the 10 s of the other.
    const late = withDeadline(5_000, write);
    await untilWaiting(url, 1);
    const patient = write();
    await expect(late).rejects.toMatchObject(LATE);
    await untilWaiting(url, 1);
    await held.release();
    // Nor do its statements have the limits of the other.
    expect(await patient).toBe("10s");
  });

  test("waits for 10 s where its caller has no deadline, and writes nothing then", async () => {
    const scope = await makeOrganization(store);
    const held = await holdLocks(url, [scope.organizationId]);
    const late = store.write(SYSTEM, "test", (tx) => rename(tx, scope, "late"), within(scope));
    await expect(late).rejects.toMatchObject({ name: "StoreUnavailable", cause: { code: "55P03" } });
    await held.release();
    expect(await nameOf(store.reader, scope)).toBe(scope.organizationId);
    await store.write(SYSTEM, "test", (tx) => rename(tx, scope, "next"), within(scope));
    expect(await nameOf(store.reader, scope)).toBe("next");
  });
});

test("a statement of a write ends at the deadline of its caller, and others of its commit have their own", async () => {
  const scope = await makeOrganization(store);
  const limits = ({ db }: { readonly db: Reader }) => settingOf(db, "statement_timeout");
  const before = store.write(SYSTEM, "test", limits, within(scope));
  const late = withDeadline(300, () => store.write(SYSTEM, "test", ({ db }) => sleep(db), within(scope)));
  const after = store.write(SYSTEM, "test", limits, within(scope));
  await expect(late).rejects.toMatchObject(LATE);
  expect([await before, await after]).toEqual(["0", "0"]);
  const limited = withDeadline(60_000, () => store.write(SYSTEM, "test", limits, within(scope)));
  // The engine names whole seconds as such.
  expect(await limited).toMatch(/^(1min|\d{2}s|\d{5}ms)$/);
  expect(await store.write(SYSTEM, "test", limits, within(scope))).toBe("0");
});

test("a write whose caller has no deadline sets no limits: those of its connection hold", async () => {
  const scope = await makeOrganization(store);
  const timesSet = async ({ db }: { readonly db: Reader }) => {
    const { rows } = await sql<{ times: number }>`
      select coalesce(sum(generic_plans + custom_plans), 0) as times
      from pg_prepared_statements where name = 'limits'`.execute(builderOf(db));
    return rows[0]?.times ?? Number.NaN;
  };
  const write = () => store.write(SYSTEM, "test", timesSet, within(scope));
  // Of a write that has waited for a while on a busy machine, less is left.
  let before = await withDeadline(60_000, write);
  expect(before).toBeGreaterThan(0);
  const setSince = async () => {
    const [known, times] = [before, await write()];
    before = times;
    return times - known;
  };
  await until(setSince, (times) => times === 0);
});

describe("a read", () => {
  test("ends at the deadline of its caller, and the next one has its own", async () => {
    await expect(withDeadline(300, () => sleep(store.reader))).rejects.toMatchObject(LATE);
    // What is left of the deadline, in steps of 100 ms.
    const limited = await withDeadline(9_000, () => settingOf(store.reader, "statement_timeout"));
    expect(limited).toMatch(/^([1-9]s|[1-8]?\d00ms)$/);
    expect(await withDeadline(3_600_000, () => settingOf(store.reader, "statement_timeout"))).toBe("10s");
    expect(await settingOf(store.reader, "statement_timeout")).toBe("10s");
  });

  test("that takes too long ends with the error of its kind, which names the limit", async () => {
    const pool = openPool({ url }, "read", 1);
    const read = readFrom(
      pool,
      (limitMs) => new SearchTooLong(limitMs),
      () => undefined,
    );
    const ended = expect(read({ text: "select pg_sleep(3600)" })).rejects.toThrow(
      "the search takes longer than 10000 ms: search for a longer text",
    );
    // The engine ends it in the same way at its statement_timeout.
    const cancel =
      "select pg_cancel_backend(pid) from pg_stat_activity where query = 'select pg_sleep(3600)'";
    await until(
      async () => (await onCluster(url, cancel)).rowCount,
      (cancelled) => cancelled === 1,
    );
    await ended;
    await pool.end();
  });
});
