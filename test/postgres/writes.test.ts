import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import pg from "pg";
import { SearchTooLong } from "../../src/domain/error.ts";
import { openPool, readFrom } from "../../src/store/postgres/connection.ts";
import { lockForWrite } from "../../src/store/postgres/locks.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { type Reader, type Store, SYSTEM, type WriteTransaction, within } from "../../src/store/store.ts";
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

let made = 0;
/** Creates an organization; its scope. */
async function organization() {
  made += 1;
  const id = `organization-${made}`;
  await one.write(SYSTEM, "test", async ({ db, now }) => {
    const row = { id, name: id, created_at: now, updated_at: now };
    await builderOf(db)
      .insertInto("organization")
      .values({ ...row, sequence: 0, enterprise: 0, chain_hash: null, pruned_sequence: 0 })
      .execute();
  });
  return { organizationId: id };
}
type Scope = Awaited<ReturnType<typeof organization>>;

const nameOf = async (db: Reader, { organizationId: id }: Scope) => {
  const { name } = await builderOf(db)
    .selectFrom("organization")
    .select("name")
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
  return name;
};
const rename = ({ db }: Pick<WriteTransaction, "db">, { organizationId: id }: Scope, name: string) =>
  builderOf(db).updateTable("organization").set({ name }).where("id", "=", id).execute();
const change = ({ organizationId }: Scope) =>
  ({ organizationId, type: "organization", id: organizationId, kind: "updated" }) as const;

/** Holds the locks of a write on a connection of its own until `release`. */
async function holding(locks: readonly string[] | "installation") {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("begin");
  await lockForWrite(client as unknown as pg.PoolClient, locks);
  return {
    client,
    async release() {
      await client.query("commit");
      await client.end();
    },
  };
}

/** Waits until so many connections wait for a lock. */
const untilWaiting = (count: number) =>
  until(
    async () =>
      (
        await onCluster(
          url,
          "select from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())",
        )
      ).rowCount,
    (waiting) => waiting === count,
  );

describe("a write of an organization", () => {
  test("waits for who holds its lock, and then sees what that changed", async () => {
    const scope = await organization();
    const held = await holding([scope.organizationId]);
    const seen = one.write(SYSTEM, "test", ({ db }) => nameOf(db, scope), within(scope));
    await untilWaiting(1);
    await held.client.query("update organization set name = 'changed' where id = $1", [scope.organizationId]);
    await held.release();
    expect(await seen).toBe("changed");
  });

  test("waits for a write of the installation, and that for it", async () => {
    const scope = await organization();
    const all = await holding("installation");
    const order: string[] = [];
    const own = one.write(SYSTEM, "test", async () => void order.push("own"), within(scope));
    await untilWaiting(1);
    order.push("released");
    await all.release();
    await own;
    const held = await holding([scope.organizationId]);
    const whole = one.write(SYSTEM, "test", async () => void order.push("whole"));
    await untilWaiting(1);
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
        tx.record(change(neighbour));
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
          tx.record(change(first));
          tx.record(change(second));
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
            tx.record(change(scope));
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
  for (const table of ["audit_log", "event"] as const) {
    const rows = await builderOf(one.reader)
      .selectFrom(table)
      .select("sequence")
      .where("organization_id", "=", organizationId)
      .orderBy("sequence")
      .execute();
    expect(rows.map(({ sequence }) => sequence)).toEqual(Array.from({ length: count }, (_, i) => i + 1));
  }
}

describe("a part of a write", () => {
  test("that fails leaves neither rows nor records, and the rest is written", async () => {
    const scope = await organization();
    await one.write(
      SYSTEM,
      "test",
      async (tx) => {
        tx.record(change(scope));
        const part = tx.attempt(async () => {
          await rename(tx, scope, "part");
          tx.record(change(scope));
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
  test("that leaves while its organization is locked has begun nothing", async () => {
    const scope = await organization();
    const held = await holding([scope.organizationId]);
    const leaving = new AbortController();
    const first = one.write(SYSTEM, "test", async () => "first", within(scope));
    const second = one.write(SYSTEM, "test", (tx) => rename(tx, scope, "late"), {
      ...within(scope),
      signal: leaving.signal,
    });
    await untilWaiting(1);
    leaving.abort(new Error("left"));
    await held.release();
    expect(await first).toBe("first");
    await expect(second).rejects.toThrow("left");
    expect(await nameOf(one.reader, scope)).toBe(scope.organizationId);
  });

  test("waits for at most 10 s for a lock, and writes nothing then", async () => {
    const scope = await organization();
    const held = await holding([scope.organizationId]);
    const late = one.write(SYSTEM, "test", (tx) => rename(tx, scope, "late"), within(scope));
    await expect(late).rejects.toMatchObject({ name: "StoreUnavailable", cause: { code: "55P03" } });
    await held.release();
    expect(await nameOf(one.reader, scope)).toBe(scope.organizationId);
    await one.write(SYSTEM, "test", (tx) => rename(tx, scope, "next"), within(scope));
    expect(await nameOf(one.reader, scope)).toBe("next");
  });

  test("whose connection breaks in the write is told that the database is unavailable; the next is served", async () => {
    const scope = await organization();
    const broken = one.write(
      SYSTEM,
      "test",
      async (tx) => {
        await rename(tx, scope, "half");
        const [{ pid }] = (
          await onCluster(
            url,
            "select pid from pg_stat_activity where application_name = 'chartroom write' and state like 'idle in transaction%'",
          )
        ).rows as [{ pid: number }];
        await onCluster(url, `select pg_terminate_backend(${pid})`);
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

describe("a commit", () => {
  test("calls the listeners of its resource in every process, and those of no other", async () => {
    const [scope, neighbour] = [await organization(), await organization()];
    const called: string[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const ends = [
      other.onChange(scope.organizationId, () => {
        called.push("own");
        resolve();
      }),
    ];
    await one.write(SYSTEM, "test", async (tx) => tx.record(change(scope)), within(scope));
    await promise;
    expect(called.length).toBeGreaterThan(0);
    for (const end of ends) end();
    void neighbour;
  });
});

test("a query that reads for too long ends with the error of its kind, which names the limit", async () => {
  const pool = openPool({ url }, "read", 1);
  const query = readFrom(pool, (limitMs) => new SearchTooLong(limitMs))({ text: "select pg_sleep(3600)" });
  const ended = expect(query).rejects.toThrow(
    "the search takes longer than 10000 ms: search for a longer text",
  );
  // The engine ends it in the same way at its statement_timeout.
  await until(
    async () =>
      (
        await onCluster(
          url,
          "select pg_cancel_backend(pid) from pg_stat_activity where query = 'select pg_sleep(3600)'",
        )
      ).rowCount,
    (cancelled) => cancelled === 1,
  );
  await ended;
  await pool.end();
});
