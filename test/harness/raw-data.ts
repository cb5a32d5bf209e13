import { join } from "node:path";
import Database from "better-sqlite3";
import pg from "pg";
import { lockForWrite } from "../../src/store/postgres/locks.ts";
import { DATABASE_FILE } from "../../src/store/sqlite/open.ts";
import { databaseUrlOf } from "./data-config.ts";
import { until } from "./until.ts";

/** The rows of a data folder without a store: what no answer tells, and what no call can change. */
export interface RawData {
  readonly isPostgres: boolean;
  /** Runs one statement, with `?` for each value. @returns its rows */
  rows<T = Record<string, unknown>>(statement: string, ...values: readonly unknown[]): Promise<T[]>;
  /** Runs statements without values. */
  run(statements: string): Promise<void>;
  /** Begins a transaction whose statements all see the rows of one moment; it ends with the connection. */
  beginSnapshot(): Promise<void>;
  /** Begins a transaction, and takes the lock for which every write waits. */
  beginLocked(): Promise<void>;
}

/** Works on the rows of a data folder, while its server runs or after it. */
export async function withRawData<T>(dataDir: string, work: (raw: RawData) => Promise<T>): Promise<T> {
  const url = databaseUrlOf(dataDir);
  return url === undefined ? withRawFile(join(dataDir, DATABASE_FILE), work) : inDatabase(url, work);
}

/**
 * Works on the rows of a data folder as somebody can who has the file, or is the database's superuser: what keeps
 * rows from being changed does not keep them, and rows may refer to what is not there.
 */
export function tampering<T>(dataDir: string, work: (raw: RawData) => Promise<T>): Promise<T> {
  return withRawData(dataDir, async (raw) => {
    if (raw.isPostgres) {
      await raw.run("set session_replication_role = replica");
      return work(raw);
    }
    const triggers = await raw.rows("select name, sql from sqlite_schema where type = 'trigger'");
    const drops = triggers.map(({ name }) => `drop trigger "${name}";`);
    await raw.run(`pragma foreign_keys = off; ${drops.join("")}`);
    const result = await work(raw);
    await raw.run(triggers.map(({ sql }) => `${sql};`).join(""));
    return result;
  });
}

/**
 * Waits until a database has seen that the connections of a killed server are gone: until then, it may finish what
 * that server had asked for.
 */
export function untilForgotten(dataDir: string): Promise<unknown> {
  return withRawData(dataDir, async (raw) => {
    const others =
      "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'";
    if (raw.isPostgres)
      await until(
        () => raw.rows(others),
        (found) => found.length === 0,
      );
  });
}

/**
 * Suspends all writers that change rows, with the transaction open, until their process is killed.
 *
 * @param change such as `update on host_token`
 * @param when a condition of SQL that holds at the rows at which they are suspended
 * @returns a function that lets later writers go on
 */
export async function suspendWriters(
  dataDir: string,
  change: string,
  when = "true",
): Promise<() => Promise<void>> {
  await withRawData(dataDir, (raw) =>
    raw.run(
      raw.isPostgres
        ? `create function suspend_writers() returns trigger language plpgsql as
            $$ begin if ${when} then perform pg_sleep(3600); end if; return coalesce(new, old); end $$;
          create trigger suspend_writers before ${change} for each row execute function suspend_writers()`
        : `create view endless as with recursive n(x) as (values (0) union all select x from n) select x from n;
          create trigger suspend_writers before ${change} when ${when} begin select count(*) from endless; end`,
    ),
  );
  return () =>
    withRawData(dataDir, (raw) =>
      raw.run(
        raw.isPostgres
          ? "drop function suspend_writers() cascade"
          : "drop trigger suspend_writers; drop view endless",
      ),
    );
}

/** Returns the names of the tables, without those of the engine. */
export async function tablesOf(raw: RawData): Promise<string[]> {
  const rows = await raw.rows<{ name: string }>(
    raw.isPostgres
      ? "select tablename as name from pg_tables where schemaname = current_schema order by 1"
      : "select name from pragma_table_list where schema = 'main' and type = 'table' and name not like 'sqlite_%' order by 1",
  );
  return rows.map(({ name }) => name);
}

/** Returns the names of a table's columns. */
export async function columnsOf(raw: RawData, table: string): Promise<string[]> {
  const rows = await raw.rows<{ name: string }>(
    raw.isPostgres
      ? "select column_name as name from information_schema.columns where table_schema = current_schema and table_name = ?"
      : "select name from pragma_table_info(?)",
    table,
  );
  return rows.map(({ name }) => name);
}

/** Returns the number of rows of a table. */
export async function countOf(raw: RawData, table: string): Promise<number> {
  const [row] = await raw.rows<{ count: number }>(`select count(*) as count from "${table}"`);
  return row?.count ?? -1;
}

/** Works on the rows of a file of SQLite, such as a backup. */
export async function withRawFile<T>(file: string, work: (raw: RawData) => Promise<T>): Promise<T> {
  const db = new Database(file, { fileMustExist: true });
  try {
    return await work({
      isPostgres: false,
      async rows<R>(statement: string, ...values: readonly unknown[]) {
        const prepared = db.prepare<unknown[], R>(statement);
        if (prepared.reader) return prepared.all(...values);
        prepared.run(...values);
        return [];
      },
      run: async (statements) => void db.exec(statements),
      beginSnapshot: async () => void db.exec("begin"),
      beginLocked: async () => void db.exec("begin immediate"),
    });
  } finally {
    db.close();
  }
}

/** Numbers of 64 bits arrive as on SQLite. */
const TYPES: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text" | "binary") =>
    oid === pg.types.builtins.INT8
      ? Number
      : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
};

async function inDatabase<T>(url: string, work: (raw: RawData) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, types: TYPES });
  await client.connect();
  try {
    return await work({
      isPostgres: true,
      async rows<R>(statement: string, ...values: readonly unknown[]) {
        let place = 0;
        const text = statement.replaceAll("?", () => {
          place += 1;
          return `$${place}`;
        });
        return (await client.query(text, [...values])).rows as R[];
      },
      run: async (statements) => void (await client.query(statements)),
      beginSnapshot: async () =>
        void (await client.query("begin isolation level repeatable read, read only")),
      async beginLocked() {
        await client.query("begin");
        await lockForWrite(client as pg.PoolClient, "installation");
      },
    });
  } finally {
    await client.end();
  }
}
