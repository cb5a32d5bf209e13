import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { presentDeadline, withDeadline } from "../../src/rpc/deadline.ts";
import { type Store, SYSTEM, within } from "../../src/store/store.ts";
import {
  changeOf,
  countWaiting,
  type HeldElsewhere,
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

/** Connections for requests: of those that write, one is for jobs, and one for bookkeeping. */
const REQUESTS = 6;

let cluster: PostgresCluster;
let url: string;
let store: Store;
beforeAll(async () => {
  cluster = await startPostgres("embedded", ["fsync=off"]);
  url = await emptyDatabase(cluster);
  store = await openProcess(url, { connections: REQUESTS + 2, deadline: presentDeadline });
});
afterAll(async () => {
  await store?.close();
  await cluster?.stop();
});

/** Makes organizations whose locks a connection of its own holds, each. */
async function makeHeld(count: number): Promise<{ scopes: TestScope[]; held: HeldElsewhere[] }> {
  const scopes = await Promise.all(Array.from({ length: count }, () => makeOrganization(store)));
  const held = await Promise.all(scopes.map(({ organizationId }) => holdLocks(url, [organizationId])));
  return { scopes, held };
}

/** Writes one record, for a caller that waits until the test has freed the lock. @returns the value */
const record = <T>(scope: TestScope, value: T): Promise<T> =>
  withDeadline(200_000, () =>
    store.write(
      SYSTEM,
      "test",
      async (tx) => {
        tx.record(changeOf(scope));
        return value;
      },
      within(scope),
    ),
  );

/** Returns when the transactions that wait for a lock of the program have begun. */
async function beginsOfWaiting(): Promise<number[]> {
  const { rows } = await onCluster(
    url,
    `select extract(epoch from xact_start)::float8 as begun from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and wait_event = 'advisory'`,
  );
  return rows.map(({ begun }) => begun);
}

/** Waits until no transaction waits for a lock that did so at the call: the server has begun all of them again. */
async function untilBegunAgain(): Promise<void> {
  const before = new Set(await until(beginsOfWaiting, (begins) => begins.length > 0));
  await until(beginsOfWaiting, (begins) => begins.length > 0 && begins.every((begun) => !before.has(begun)));
}

test.each([
  ["as many organizations as there are connections for requests", REQUESTS],
  ["many more", 4 * REQUESTS],
])("%s, whose locks are held elsewhere, hold up no other", async (_, count) => {
  const free = await makeOrganization(store);
  const { scopes, held } = await makeHeld(count);
  const done: string[] = [];
  const waiting = scopes.flatMap(({ organizationId }) =>
    ["first", "second", "third"].map(async (place) =>
      done.push(`${organizationId} ${await record({ organizationId }, place)}`),
    ),
  );
  // Those that give up are seen by Promise.all() below.
  for (const write of waiting) write.catch(() => {});
  await until(
    () => countWaiting(url),
    (transactions) => transactions > 0,
  );

  expect(await record(free, "written")).toBe("written");
  expect(await nameOf(store.reader, free)).toBe(free.organizationId);
  // At last they leave half of the connections.
  await untilWaiting(url, REQUESTS / 2);
  expect(await record(free, "written")).toBe("written");
  expect(done).toEqual([]);

  await Promise.all(held.map((each) => each.release()));
  await Promise.all(waiting);
  for (const { organizationId } of scopes) {
    expect(done.filter((text) => text.startsWith(`${organizationId} `))).toEqual(
      ["first", "second", "third"].map((place) => `${organizationId} ${place}`),
    );
    expect(await sequencesOf(store, "event", { organizationId })).toEqual([1, 2, 3]);
  }
});

test("each of many gets its lock once that is free, while the others wait on", async () => {
  const { scopes, held } = await makeHeld(2 * REQUESTS);
  const waiting = scopes.map((scope) => record(scope, scope.organizationId));
  await untilBegunAgain();
  const settled: unknown[] = [];
  for (const write of waiting) write.then((value) => settled.push(value)).catch((e) => settled.push(e));
  for (const index of [7, 2, 11, 0]) {
    await held[index]?.release();
    expect(await waiting[index]).toBe(scopes[index]?.organizationId);
  }
  expect(settled).toHaveLength(4);
  await Promise.all(held.map((each, index) => [7, 2, 11, 0].includes(index) || each.release()));
  await Promise.all(waiting);
});

test("one whose deadline passes ends in time, also next to one that waits longer, and writes nothing", async () => {
  const { scopes, held } = await makeHeld(2 * REQUESTS);
  const patient = scopes.map((scope) => record(scope, "patient"));
  const settled: unknown[] = [];
  for (const write of patient) write.then((value) => settled.push(value)).catch((e) => settled.push(e));
  await untilBegunAgain();
  const late = scopes.map((scope) =>
    withDeadline(300, () => store.write(SYSTEM, "test", (tx) => rename(tx, scope, "late"), within(scope))),
  );
  for (const { reason } of (await Promise.allSettled(late)) as PromiseRejectedResult[])
    expect(reason).toMatchObject({ reason: ErrorReason.DEADLINE_EXCEEDED });
  expect(settled).toEqual([]);
  await Promise.all(held.map((each) => each.release()));
  await Promise.all(patient);
  for (const scope of scopes) expect(await nameOf(store.reader, scope)).toBe(scope.organizationId);
});

test("the metric counts the whole wait", async () => {
  const { scopes, held } = await makeHeld(1);
  const before = store.measures.lockWaitSeconds.sum;
  const waiting = scopes.map((scope) => record(scope, "written"));
  await until(beginsOfWaiting, (begins) => begins.length > 0);
  const begun = performance.now();
  await untilBegunAgain();
  await untilBegunAgain();
  const waited = performance.now() - begun;
  await held[0]?.release();
  await Promise.all(waiting);
  expect(store.measures.lockWaitSeconds.sum - before).toBeGreaterThanOrEqual(waited / 1000);
});

test("a write of two organizations that waits for one of them does not keep the other to itself", async () => {
  const free = await makeOrganization(store);
  const { scopes, held } = await makeHeld(1);
  const settled: string[] = [];
  const both = withDeadline(200_000, () =>
    store.write(SYSTEM, "test", async () => void settled.push("both"), {
      locks: [free, ...scopes].map(({ organizationId }) => organizationId),
    }),
  );
  await until(beginsOfWaiting, (begins) => begins.length > 0);
  expect(await record(free, "written")).toBe("written");
  expect(settled).toEqual([]);
  await held[0]?.release();
  await both;
});
