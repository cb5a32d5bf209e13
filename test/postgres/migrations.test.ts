import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import pg from "pg";
import { type Migration, migrate, migrations } from "../../src/store/postgres/migrate.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { MIGRATIONS } from "../../src/store/sqlite/migrate.ts";
import { SYSTEM } from "../../src/store/store.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster, openProcess } from "../harness/postgres-store.ts";
import { until } from "../harness/until.ts";

let cluster: PostgresCluster;
beforeAll(async () => {
  cluster = await startPostgres("embedded", ["fsync=off"]);
});
afterAll(() => cluster?.stop());

/** Opens a connection, and ends it after the work. */
async function connected<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Migrates a database as a release does that has some more migrations. */
const migrateWith = (url: string, ...more: readonly Migration[]) =>
  connected(url, (client) => migrate(client, [...migrations(), ...more]));

const COLUMN: Migration = { name: "9001-column", statements: "alter table fact add column note text" };
const INDEX: Migration = {
  name: "9002-index",
  indexes: [{ name: "fact_by_value", definition: "on fact (value)" }],
};

const indexOf = async (url: string) =>
  (
    await onCluster(
      url,
      "select indisvalid as valid, indisunique as unique from pg_index where indexrelid = to_regclass('fact_by_value')",
    )
  ).rows;

test("migrations have the same numbers on both engines since PostgreSQL's first", () => {
  const numbers = (all: readonly { readonly name: string }[]) => all.map(({ name }) => name.slice(0, 4));
  // SQLite builds indexes with the tables that they are of.
  const own = numbers(migrations().filter((migration) => !("indexes" in migration)));
  expect(own).toEqual(numbers(MIGRATIONS).filter((number) => number >= (own[0] ?? "")));
});

describe("a release beside a newer one", () => {
  test("starts on the newer one's tables, and goes on when they get a column", async () => {
    const url = await emptyDatabase(cluster);
    const older = await openProcess(url);
    const add = (name: string) =>
      older.write(SYSTEM, "test", async ({ db }) => {
        await builderOf(db).insertInto("fact").values({ name, value: "x" }).execute();
        // Of all columns, whose number the engine keeps for a prepared statement.
        return builderOf(db).selectFrom("fact").selectAll().orderBy("name").execute();
      });
    const read = () => builderOf(older.reader).selectFrom("fact").selectAll().orderBy("name").execute();
    await add("first");
    expect(await read()).toHaveLength(1);
    expect(await migrateWith(url, COLUMN)).toEqual([COLUMN.name]);
    expect((await read()).map(({ name }) => name)).toEqual(["first"]);
    expect((await add("second")).map(({ name }) => name)).toEqual(["first", "second"]);
    await older.close();
    expect(await migrateWith(url)).toEqual([]);
    const again = await openProcess(url);
    expect(again.problem()).toBeUndefined();
    await again.close();
  });

  test("does not start on the data of another program", async () => {
    const url = await emptyDatabase(cluster);
    await migrateWith(url);
    await onCluster(url, "update migration set name = '0020-something' where position = 1");
    await expect(openProcess(url)).rejects.toThrow("holds the migration 0020-something");
  });
});

describe("a migration of tables", () => {
  test("holds nobody up for long while a table is in use, and runs when it is free", async () => {
    const url = await emptyDatabase(cluster);
    await migrateWith(url);
    const reading = new pg.Client({ connectionString: url });
    await reading.connect();
    await reading.query("begin; select from fact");
    const migrated = migrateWith(url, COLUMN);
    const waits = () =>
      onCluster(url, "select from pg_locks where relation = 'fact'::regclass and not granted").then(
        ({ rowCount }) => rowCount,
      );
    await until(waits, (count) => count === 1);
    // Behind the migration in the queue of the table's lock.
    await onCluster(url, "select from fact");
    await reading.query("commit");
    expect(await migrated).toEqual([COLUMN.name]);
    await reading.end();
  });

  test("waits for writes under way", async () => {
    const url = await emptyDatabase(cluster);
    const store = await openProcess(url);
    const order: string[] = [];
    const begun = Promise.withResolvers<void>();
    const write = store.write(
      SYSTEM,
      "test",
      async ({ db }) => {
        begun.resolve();
        const waits = () =>
          onCluster(url, "select from pg_locks where locktype = 'advisory' and not granted").then(
            ({ rowCount }) => rowCount,
          );
        await until(waits, (count) => count === 1);
        await builderOf(db).insertInto("fact").values({ name: "x", value: "" }).execute();
        order.push("write");
      },
      { locks: ["organization"] },
    );
    await begun.promise;
    await migrateWith(url, COLUMN);
    order.push("migration");
    await write;
    expect(order).toEqual(["write", "migration"]);
    await store.close();
  });

  test("that fails leaves what the ones before it have made, and can be repeated", async () => {
    const url = await emptyDatabase(cluster);
    const failing: Migration = { name: "9009-failing", statements: "create table more (); select absent()" };
    await expect(migrateWith(url, COLUMN, failing)).rejects.toThrow("function absent() does not exist");
    expect((await onCluster(url, "select to_regclass('more') as found")).rows).toEqual([{ found: null }]);
    expect(await migrateWith(url, COLUMN)).toEqual([]);
    const mended = { ...failing, statements: "create table more ()" };
    expect(await migrateWith(url, COLUMN, mended)).toEqual([failing.name]);
  });

  test("that older servers cannot stand waits for none, says what to do, and shuts them out", async () => {
    const url = await emptyDatabase(cluster);
    await migrateWith(url);
    await onCluster(url, "update installation set feature_level = 0");
    const breaking: Migration = { name: "9003-breaking", statements: "select 1", lowestLevel: 1 };
    const older = new pg.Client({ connectionString: url });
    await older.connect();
    // As a server of level 0 holds it.
    await older.query("select pg_advisory_lock_shared($1::int, 0)", [0x43_48_4c_56]);
    await expect(migrateWith(url, breaking)).rejects.toThrow(
      "a server of an earlier release runs, which cannot use the tables of this one: stop all of them",
    );
    await older.end();
    expect(await migrateWith(url, breaking)).toEqual([breaking.name]);
    expect((await onCluster(url, "select feature_level::int as level from installation")).rows).toEqual([
      { level: 1 },
    ]);
  });
});

describe("a migration of indexes", () => {
  test("builds them again where it was cut short", async () => {
    const url = await emptyDatabase(cluster);
    await migrateWith(url);
    await onCluster(url, "insert into fact (name, value) values ('a', 'same'), ('b', 'same')");
    // The engine leaves an index whose build failed, and does not use it.
    await expect(
      onCluster(url, "create unique index concurrently fact_by_value on fact (value)"),
    ).rejects.toThrow("could not create unique index");
    expect(await indexOf(url)).toEqual([{ valid: false, unique: true }]);
    expect(await migrateWith(url, INDEX)).toEqual([INDEX.name]);
    expect(await indexOf(url)).toEqual([{ valid: true, unique: false }]);
    // Built, but not noted before the process ended.
    await onCluster(url, `delete from migration where name = '${INDEX.name}'`);
    expect(await migrateWith(url, INDEX)).toEqual([INDEX.name]);
    expect(await indexOf(url)).toEqual([{ valid: true, unique: false }]);
  });

  test("of several processes at once runs in one, and none waits for another without end", async () => {
    const url = await emptyDatabase(cluster);
    const ran = await Promise.all(Array.from({ length: 4 }, () => migrateWith(url, COLUMN, INDEX)));
    expect(ran.filter((names) => names.includes(INDEX.name))).toHaveLength(1);
    expect(ran.flat()).toHaveLength(migrations().length + 2);
    expect(await indexOf(url)).toEqual([{ valid: true, unique: false }]);
  });
});
