import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import pg from "pg";
import { type Migration, migrate, migrations } from "../../src/store/postgres/migrate.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { MIGRATIONS } from "../../src/store/sqlite/migrate.ts";
import { SYSTEM } from "../../src/store/store.ts";
import { storedKey } from "../../src/store/workflow/workflow-trigger-event.ts";
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
  // One that is ended fails its query; the event alone would end the process.
  client.on("error", () => {});
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

describe("a release alongside a newer one", () => {
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
    const corrected = { ...failing, statements: "create table more ()" };
    expect(await migrateWith(url, COLUMN, corrected)).toEqual([failing.name]);
  });

  test("that older servers cannot work with waits for none, says what to do, and shuts them out", async () => {
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

describe("data of an earlier release", () => {
  /** Returns a database as the release before a migration left it. */
  async function databaseBefore(name: string): Promise<string> {
    const url = await emptyDatabase(cluster);
    const all = migrations();
    const first = all.findIndex((migration) => migration.name === name);
    await connected(url, (client) => migrate(client, all.slice(0, first)));
    return url;
  }

  test("keeps the long keys of a workflow's ledger as hashes, but for one whose event came again since", async () => {
    const url = await databaseBefore("0029-trigger-event-keys");
    const [long, again, short] = ["l".repeat(2_000), "ü".repeat(600), "s".repeat(1_024)];
    await connected(url, async (client) => {
      await client.query("set session_replication_role = replica");
      for (const [id, key] of [long, again, storedKey(again), short, null].entries()) {
        await client.query(
          "insert into workflow_trigger_event values ($1, 'o', 'w', 0, 0, 0, $2, null, '{}', '{}')",
          [String(id), key],
        );
      }
    });
    await migrateWith(url);
    const { rows } = await onCluster(url, "select dedupe_key from workflow_trigger_event order by id");
    expect(rows.map((row) => row.dedupe_key)).toEqual([storedKey(long), null, storedKey(again), short, null]);
  });

  test("is searched by the index that replaces the one of trigrams, also when its build was cut short", async () => {
    const url = await databaseBefore("0028-project-indexes");
    await onCluster(url, "create extension pg_trgm");
    await onCluster(
      url,
      "create index project_by_search_text on project using gin (search_text gin_trgm_ops)",
    );
    await connected(url, async (client) => {
      await client.query("set session_replication_role = replica");
      await client.query(
        `insert into project (id, organization_id, creator_id, desired_phase, search_text, technical_description,
          used_by, body) select n::text, 'o', '', 1, 'text ' || n, '', '{}', '{}' from generate_series(1, 3000) as n`,
      );
    });
    // The build waits for this transaction, and is ended there.
    const reading = new pg.Client({ connectionString: url });
    await reading.connect();
    await reading.query("begin isolation level repeatable read; select from project limit 1");
    const ended = expect(migrateWith(url)).rejects.toThrow(/terminat/);
    const building = () =>
      onCluster(url, "select pid from pg_stat_progress_create_index where phase like 'waiting%'").then(
        ({ rows }) => rows[0]?.pid,
      );
    const pid = await until(building, (found) => found !== undefined);
    await onCluster(url, `select pg_terminate_backend(${pid})`);
    await ended;
    await reading.end();
    await migrateWith(url);
    const { rows } = await onCluster(
      url,
      `select c.relname as name, x.indisvalid as valid from pg_index x join pg_class c on c.oid = x.indexrelid
      where indrelid in ('project'::regclass, 'project_remote'::regclass) order by 1`,
    );
    expect(rows.filter(({ valid }) => !valid)).toEqual([]);
    const names = rows.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["project_by_grams", "project_remote_of_project"]));
    expect(names.filter((name) => /search_text|remote_by_project/.test(name))).toEqual([]);
    const { rows: found } = await onCluster(
      url,
      "select id from project where project_grams(organization_id, search_text) @@ '''o999'''::tsquery",
    );
    expect(found.map(({ id }) => id).sort()).toEqual(["1999", "2999", "999"]);
  });

  test("has what its long list of new texts held moved into the index, and is searched as before", async () => {
    const url = await databaseBefore("0091-shorter-pending-list");
    await onCluster(url, "create extension pgstattuple");
    await connected(url, async (client) => {
      await client.query("set session_replication_role = replica");
      await client.query(
        `insert into project (id, organization_id, creator_id, desired_phase, search_text, technical_description,
          used_by, body) select n::text, 'o', '', 1, 'text ' || n, '', '{}', '{}' from generate_series(1, 3000) as n`,
      );
    });
    const askFor = async (query: string) => (await onCluster(url, query)).rows;
    const pending = () =>
      askFor("select pending_pages::int as pages from pgstatginindex('project_by_grams')");
    const found = () =>
      askFor(
        "select id from project where project_grams(organization_id, search_text) @@ '''o999'''::tsquery order by id",
      );
    // More than the shorter list takes.
    expect((await pending())[0]?.pages).toBeGreaterThan(512 / 8);
    const before = await found();
    expect(before).toEqual([{ id: "1999" }, { id: "2999" }, { id: "999" }]);
    await migrateWith(url);
    expect([await pending(), await found()]).toEqual([[{ pages: 0 }], before]);
    const options = "select reloptions as options from pg_class where oid = 'project_by_grams'::regclass";
    expect(await askFor(options)).toEqual([{ options: ["gin_pending_list_limit=512"] }]);
  });
});
