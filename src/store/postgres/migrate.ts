import { readdirSync, readFileSync } from "node:fs";
import type pg from "pg";
import { lockForMigration, unlockMigration } from "./locks.ts";
import { triggers } from "./migrations/0019-baseline/triggers.ts";
import { requireTrigrams } from "./requirements.ts";

export interface Migration {
  /** Of the same number as the migration of SQLite that makes the same tables. */
  readonly name: string;
  /** Statements that run in one transaction. */
  readonly statements: string;
}

/** Reads the statements of a folder, in the order of the names of its files. */
function statementsIn(folder: string): string[] {
  const place = new URL(`./migrations/${folder}/`, import.meta.url);
  const files = readdirSync(place).filter((file) => file.endsWith(".sql"));
  return files.sort().map((file) => readFileSync(new URL(file, place), "utf8"));
}

/** The migrations in the order of their release. A released migration is never edited. */
export function migrations(): readonly Migration[] {
  return [
    {
      name: "0019-baseline",
      statements: [
        ...statementsIn("0019-baseline"),
        triggers,
        "insert into installation (id, sequence) values (1, 0)",
      ].join("\n"),
    },
  ];
}

/** @throws Error with a sentence for the operator when the tables are not those of this release */
export async function requireMigrated(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ known: boolean }>(
    "select to_regclass('migration') is not null as known",
  );
  const done = rows[0]?.known
    ? await client.query<{ name: string }>("select name from migration order by position desc limit 1")
    : undefined;
  if (done?.rows[0]?.name === migrations().at(-1)?.name) return;
  throw new Error(
    "the database is not of this release: start the server with it once, or use the release that wrote it",
  );
}

/**
 * Migrates the schema to the newest form, each migration in a transaction of its own. Servers may call this at once:
 * they wait for each other.
 * @returns the names of the migrations that ran
 * @throws Error with a sentence for the operator when a newer release wrote to the database
 */
export async function migrate(client: pg.ClientBase, all = migrations()): Promise<string[]> {
  await lockForMigration(client);
  try {
    // Under the lock: of two that create it at once, the engine fails one.
    await requireTrigrams(client);
    await client.query(`create table if not exists migration (
      position bigint primary key,
      name text collate "C" not null unique
    )`);
    const { rows } = await client.query<{ name: string }>("select name from migration order by position");
    const foreign = rows.find(({ name }, position) => all[position]?.name !== name);
    if (foreign) {
      throw new Error(
        `the database holds the migration ${foreign.name}, which this release does not know; start the release that wrote it`,
      );
    }
    const ran: string[] = [];
    for (const [position, { name, statements }] of all.entries()) {
      if (position < rows.length) continue;
      await client.query("begin");
      try {
        await client.query(statements);
        await client.query("insert into migration (position, name) values ($1, $2)", [position, name]);
        await client.query("commit");
      } catch (error) {
        await client.query("rollback");
        throw error;
      }
      ran.push(name);
    }
    return ran;
  } finally {
    await unlockMigration(client);
  }
}
