import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { builderOf } from "../../src/store/query-builder.ts";
import { type Store, SYSTEM, within } from "../../src/store/store.ts";
import {
  changeOf,
  holdLocks,
  makeOrganization,
  nameOf,
  rename,
  sequencesOf,
  untilWaiting,
} from "../harness/locked-organizations.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster, openProcess } from "../harness/postgres-store.ts";
import { until } from "../harness/until.ts";

let cluster: PostgresCluster;
let url: string;
let one: Store;
let other: Store;
beforeAll(async () => {
  cluster = await startPostgres("embedded");
  url = await emptyDatabase(cluster);
  one = await openProcess(url);
  other = await openProcess(url);
});
afterAll(async () => {
  await Promise.all([one?.close(), other?.close()]);
  await cluster?.stop();
});

const organization = () => makeOrganization(one);
const holding = (locks: readonly string[] | "installation") => holdLocks(url, locks);

describe("a write of an organization", () => {
  test("waits for who holds its lock, and then sees what that changed", async () => {
    const scope = await organization();
    const held = await holding([scope.organizationId]);
    const seen = one.write(SYSTEM, "test", ({ db }) => nameOf(db, scope), within(scope));
    await untilWaiting(url, 1);
    await held.client.query("update organization set name = 'changed' where id = $1", [scope.organizationId]);
    await held.release();
    expect(await seen).toBe("changed");
  });

  test("waits for a write of the installation, and that for it", async () => {
    const scope = await organization();
    const all = await holding("installation");
    const order: string[] = [];
    const own = one.write(SYSTEM, "test", async () => void order.push("own"), within(scope));
    await untilWaiting(url, 1);
    order.push("released");
    await all.release();
    await own;
    const held = await holding([scope.organizationId]);
    const whole = one.write(SYSTEM, "test", async () => void order.push("whole"));
    await untilWaiting(url, 1);
    order.push("released");
    await held.release();
    await whole;
    expect(order).toEqual(["released", "own", "released", "whole"]);
  });

  test("does not wait for another organization", async () => {
    const [scope, neighbour] = [await organization(), await organization()];
    const held = await holding([neighbour.organizationId]);
    expect(await one.write(SYSTEM, "test", ({ db }) => nameOf(db, scope), within(scope))).toBe(
      scope.organizationId,
    );
    await held.release();
  });

  test("that changes what it has not locked fails, and leaves nothing", async () => {
    const [scope, neighbour] = [await organization(), await organization()];
    const write = one.write(
      SYSTEM,
      "test",
      async (tx) => {
        await rename(tx, neighbour, "stolen");
        tx.record(changeOf(neighbour));
      },
      within(scope),
    );
    await expect(write).rejects.toThrow("which it has not locked");
    expect(await nameOf(one.reader, neighbour)).toBe(neighbour.organizationId);
  });

  test("locks several in one order, so that two of them never wait for each other", async () => {
    const [first, second] = [await organization(), await organization()];
    const ids = [first.organizationId, second.organizationId];
    const writes = Array.from({ length: 40 }, (_, index) =>
      (index % 2 ? one : other).write(
        SYSTEM,
        "test",
        async (tx) => {
          tx.record(changeOf(first));
          tx.record(changeOf(second));
        },
        { locks: index % 3 ? ids : ids.toReversed() },
      ),
    );
    await Promise.all(writes);
    for (const { organizationId } of [first, second]) await expectGapless(organizationId, 40);
  });

  test("has sequences without a gap, whichever process writes, and one that fails takes none", async () => {
    const scope = await organization();
    const writes = Array.from({ length: 200 }, (_, index) =>
      (index % 2 ? one : other)
        .write(
          SYSTEM,
          "test",
          async (tx) => {
            tx.record(changeOf(scope));
            if (index % 10 === 0) throw new Error("refused");
          },
          within(scope),
        )
        .then(
          () => true,
          () => false,
        ),
    );
    const done = (await Promise.all(writes)).filter(Boolean).length;
    expect(done).toBe(180);
    await expectGapless(scope.organizationId, 180);
  });

  test("of a hundred that may each be the only one, one is", async () => {
    const scope = await organization();
    const claims = Array.from({ length: 100 }, (_, index) =>
      (index % 2 ? one : other).write(
        SYSTEM,
        "test",
        async (tx) => {
          if ((await nameOf(tx.db, scope)) !== scope.organizationId) return false;
          await rename(tx, scope, `winner ${index}`);
          return true;
        },
        within(scope),
      ),
    );
    expect((await Promise.all(claims)).filter(Boolean)).toHaveLength(1);
  });
});

async function expectGapless(organizationId: string, count: number): Promise<void> {
  const whole = Array.from({ length: count }, (_, index) => index + 1);
  expect(await sequencesOf(one, "audit_log", { organizationId })).toEqual(whole);
  expect(await sequencesOf(one, "event", { organizationId })).toEqual(whole);
}

describe("a part of a write", () => {
  test("that fails leaves neither rows nor records, and the rest is written", async () => {
    const scope = await organization();
    await one.write(
      SYSTEM,
      "test",
      async (tx) => {
        tx.record(changeOf(scope));
        const part = tx.attempt(async () => {
          await rename(tx, scope, "part");
          tx.record(changeOf(scope));
          await builderOf(tx.db).insertInto("fact").values({ name: "x", value: "1" }).execute();
          await builderOf(tx.db).insertInto("fact").values({ name: "x", value: "2" }).execute();
        });
        await expect(part).rejects.toThrow("duplicate key");
      },
      within(scope),
    );
    expect(await nameOf(one.reader, scope)).toBe(scope.organizationId);
    await expectGapless(scope.organizationId, 1);
  });
});

describe("a caller", () => {
  test("whose connection breaks in the write learns that the database is unavailable; the next is served", async () => {
    const scope = await organization();
    const broken = one.write(
      SYSTEM,
      "test",
      async (tx) => {
        await rename(tx, scope, "half");
        const idle = "application_name = 'chartroom write' and state = 'idle in transaction'";
        const ended = `select pg_terminate_backend(pid) from pg_stat_activity where ${idle}`;
        // Changes are sent ahead: it may not be idle yet.
        await until(
          async () => (await onCluster(url, ended)).rowCount,
          (count) => count === 1,
        );
        await rename(tx, scope, "more");
      },
      within(scope),
    );
    await expect(broken).rejects.toMatchObject({ name: "StoreUnavailable" });
    expect(await one.write(SYSTEM, "test", ({ db }) => nameOf(db, scope), within(scope))).toBe(
      scope.organizationId,
    );
  });
});

test("a commit calls the listeners of its resource in every process", async () => {
  const scope = await organization();
  const called = [one, other].map((store) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = store.onChange(scope.organizationId, resolve);
    return promise.then(end);
  });
  await one.write(SYSTEM, "test", async (tx) => tx.record(changeOf(scope)), within(scope));
  await Promise.all(called);
});
