import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { asLeader } from "../../src/jobs/job-writes.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { type Store, SYSTEM, within } from "../../src/store/store.ts";
import {
  changeOf,
  countWaiting,
  holdLocks,
  makeOrganization,
  nameOf,
  rename,
  sequencesOf,
  type TestScope,
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
  // Two for requests, one for jobs, one for bookkeeping.
  store = await openProcess(url, { connections: 4, presence: "server", groupMs: 60_000 });
});
afterAll(async () => {
  await store?.close();
  await cluster?.stop();
});

/** Writes one record, unless `fails`. */
const record = (scope: TestScope, fails = false) =>
  store.write(
    SYSTEM,
    "test",
    async (tx) => {
      tx.record(changeOf(scope));
      if (fails) throw new Error("refused");
    },
    within(scope),
  );

/** Returns the number of transactions that wrote the audit rows of an organization. */
async function countCommits({ organizationId }: TestScope): Promise<number> {
  const { rows } = await onCluster(
    url,
    `select count(distinct xmin::text)::int as count from audit_log where organization_id = '${organizationId}'`,
  );
  return rows[0].count;
}

test("writes of an organization that wait at the same time wait once, and share a commit but no failure", async () => {
  const scope = await makeOrganization(store);
  const held = await holdLocks(url, [scope.organizationId]);
  const writes = Array.from({ length: 20 }, (_, index) => record(scope, index === 7));
  await untilWaiting(url, 1);
  // They join those who wait already.
  writes.push(...Array.from({ length: 20 }, () => record(scope)));
  await record(await makeOrganizationElsewhere());
  // None while it lets others have its turn.
  expect(await countWaiting(url)).toBeLessThanOrEqual(1);
  await held.release();
  const settled = await Promise.allSettled(writes);
  expect(settled.map(({ status }) => status === "fulfilled")).toEqual(settled.map((_, index) => index !== 7));
  expect(await sequencesOf(store, "audit_log", scope)).toHaveLength(39);
  expect(await countCommits(scope)).toBe(1);
});

/** Creates an organization while the locks of others are held: not by a write of the installation. */
async function makeOrganizationElsewhere(): Promise<TestScope> {
  const organizationId = crypto.randomUUID();
  await onCluster(
    url,
    `insert into organization (id, name, created_at, updated_at) values ('${organizationId}', 'x', 0, 0)`,
  );
  return { organizationId };
}

test("a process has one transaction that waits for an organization, whatever else its writes lock", async () => {
  const [scope, neighbour] = [await makeOrganization(store), await makeOrganization(store)];
  const held = await holdLocks(url, [scope.organizationId]);
  const order: string[] = [];
  const writes = [
    [scope.organizationId],
    [neighbour.organizationId, scope.organizationId],
    [scope.organizationId, null],
    [scope.organizationId],
  ].map((locks) => store.write(SYSTEM, "test", async () => void order.push(locks.join()), { locks }));
  await untilWaiting(url, 1);
  await record(await makeOrganizationElsewhere());
  // None while it lets others have its turn.
  expect(await countWaiting(url)).toBeLessThanOrEqual(1);
  await held.release();
  await Promise.all(writes);
  expect(order).toHaveLength(4);
});

test("a failed part of a group leaves the organization to others", async () => {
  const scope = await makeOrganization(store);
  const [failed, written] = await Promise.allSettled([record(scope, true), record(scope)]);
  expect([failed.status, written.status]).toEqual(["rejected", "fulfilled"]);
  expect(await sequencesOf(store, "event", scope)).toEqual([1]);
});

describe("writes that wait for locks", () => {
  test("leave connections for reads, bookkeeping, jobs and wake-ups", async () => {
    await until(
      () => store.leads(),
      (leads) => leads,
    );
    const scopes = await Promise.all(Array.from({ length: 6 }, () => makeOrganization(store)));
    const [free, ...locked] = scopes;
    if (!free) throw new Error("no organization");
    const held = await holdLocks(
      url,
      locked.map(({ organizationId }) => organizationId),
    );
    const waiting = locked.map((scope) => record(scope));
    await until(
      () => countWaiting(url),
      (transactions) => transactions > 0,
    );

    expect(await nameOf(store.reader, free)).toBe(free.organizationId);
    await store.note("runner", "absent", { seen_at: 1 });
    const jobs = asLeader(store);
    await jobs.write(SYSTEM, "test", (tx) => rename(tx, free, "by a job"), within(free));
    const called = Promise.withResolvers<void>();
    const end = store.onChange(free.organizationId, called.resolve);
    const elsewhere = await openProcess(url);
    await elsewhere.write(SYSTEM, "test", async (tx) => tx.record(changeOf(free)), within(free));
    await called.promise;
    end();
    await elsewhere.close();
    await held.release();
    // Nobody of those who waited had to give up for that.
    await Promise.all(waiting);
    for (const scope of locked) expect(await sequencesOf(store, "event", scope)).toEqual([1]);
  });
});

test("a deadlock with what takes no locks is tried again, and nobody notices", async () => {
  const scope = await makeOrganization(store);
  const rows = ["row-1", "row-2"].map((name) => ({ name, value: "0" }));
  await store.write(SYSTEM, "test", ({ db }) => builderOf(db).insertInto("fact").values(rows).execute());
  const update = (name: string) => `update fact set value = (value::int + 1)::text where name = '${name}'`;
  const foreign = await holdLocks(url, []);
  await foreign.client.query(update("row-1"));
  let attempts = 0;
  const written = store.write(
    SYSTEM,
    "test",
    async (tx) => {
      attempts += 1;
      tx.record(changeOf(scope));
      for (const name of ["row-2", "row-1"]) {
        const db = builderOf(tx.db);
        const { value } = await db
          .selectFrom("fact")
          .select("value")
          .where("name", "=", name)
          .executeTakeFirstOrThrow();
        await db
          .updateTable("fact")
          .set({ value: String(Number(value) + 1) })
          .where("name", "=", name)
          .execute();
      }
    },
    within(scope),
  );
  // It holds the second row and waits for the first one: the engine ends one of the two.
  await until(
    async () => (await onCluster(url, "select from pg_locks where not granted")).rowCount,
    (waiting) => waiting === 1,
  );
  const foreignEnd = await foreign.client.query(update("row-2")).then(
    () => "written",
    ({ code }) => code,
  );
  await (foreignEnd === "written"
    ? foreign.release()
    : foreign.client.query("rollback").then(() => foreign.client.end()));
  await written;
  if (foreignEnd === "written") expect(attempts).toBeGreaterThan(1);
  expect(await sequencesOf(store, "audit_log", scope)).toEqual([1]);
});
