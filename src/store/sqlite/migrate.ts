import { renameSync, rmSync, writeFileSync } from "node:fs";
import Database from "better-sqlite3";
import { fold } from "../../domain/fold.ts";
import { repositoryOfPage } from "../../domain/project/project.ts";
import { NewerData } from "../feature-level.ts";
import * as first from "./migrations/0001-first.ts";
import * as second from "./migrations/0002-record.ts";
import * as third from "./migrations/0003-workflow.ts";
import * as fourth from "./migrations/0004-member-list.ts";
import * as fifth from "./migrations/0005-agent.ts";
import * as sixth from "./migrations/0006-project-search.ts";
import * as seventh from "./migrations/0007-project-search-order.ts";
import * as eighth from "./migrations/0008-growth.ts";
import * as ninth from "./migrations/0009-source-setter.ts";
import * as tenth from "./migrations/0010-event-facts.ts";
import * as twelfth from "./migrations/0012-zone-and-conclusion.ts";
import * as thirteenth from "./migrations/0013-context-url-search.ts";
import * as fifteenth from "./migrations/0015-workflow-plan.ts";
import * as sixteenth from "./migrations/0016-organization-storage.ts";
import * as seventeenth from "./migrations/0017-organization-removal.ts";
import * as nineteenth from "./migrations/0019-token-hash.ts";
import * as twentieth from "./migrations/0020-feature-level.ts";
import { searchTrigrams } from "./search/trigrams.ts";

export interface Migration {
  readonly name: string;
  /**
   * Statements separated by semicolons; they run in one transaction, and may call `fold(text)`,
   * `search_grams(text)` and `page_repository(url)`.
   */
  readonly statements: string;
}

/** The migrations in the order of their release. A released migration is never edited. */
export const MIGRATIONS: readonly Migration[] = [
  first,
  second,
  third,
  fourth,
  fifth,
  sixth,
  seventh,
  eighth,
  ninth,
  tenth,
  twelfth,
  thirteenth,
  fifteenth,
  sixteenth,
  seventeenth,
  nineteenth,
  twentieth,
];

/** Tables that have rows in a file that nobody has used yet. */
const FILLED_BY_MIGRATIONS: ReadonlySet<string> = new Set(["migration", "installation"]);

/**
 * Migrates the file to the newest schema, each migration in a transaction of its own. Two processes
 * may call this at once: the second waits and runs the remaining migrations. A file with data is
 * copied first, to `FILE.before-NAME` with the name of the first migration that runs.
 * @param begins called for each migration that begins on a file with data, since it may take a
 * minute
 * @returns the names of the migrations that ran
 * @throws when the file was written by a newer release, or a statement fails; the file is then as
 * the last complete migration left it
 */
export function migrate(
  raw: Database.Database,
  migrations = MIGRATIONS,
  begins: (name: string) => void = () => {},
): string[] {
  raw.function("fold", { deterministic: true }, (text) => fold(String(text)));
  raw.function("search_grams", { deterministic: true }, (text) => searchTrigrams(String(text)));
  raw.function("page_repository", { deterministic: true }, (url) => repositoryOfPage(String(url)));
  raw.exec(`create table if not exists migration (
    position integer primary key,
    name text not null unique
  ) strict`);
  const ran: string[] = [];
  const before = applied(raw);
  requireOwnDatabase(before, migrations);
  for (const [position, migration] of migrations.entries()) {
    // Does not even take the lock, which a server may hold during a long write.
    if (before[position] !== undefined) continue;
    raw.exec("begin immediate");
    try {
      const done = applied(raw);
      requireOwnDatabase(done, migrations);
      if (done[position] === undefined) {
        if (hasData(raw)) {
          begins(migration.name);
          if (ran.length === 0) copyBefore(raw, migration.name);
        }
        raw.exec(migration.statements);
        raw.prepare("insert into migration (position, name) values (?, ?)").run(position, migration.name);
        ran.push(migration.name);
      }
      raw.exec("commit");
    } catch (error) {
      // Some failures, such as a full disk, have ended the transaction already.
      if (raw.inTransaction) raw.exec("rollback");
      throw error;
    }
  }
  return ran;
}

function applied(raw: Database.Database): string[] {
  return raw
    .prepare<[], { name: string }>("select name from migration order by position")
    .all()
    .map((row) => row.name);
}

function requireOwnDatabase(done: readonly string[], migrations: readonly Migration[]): void {
  const foreign = done.find((name, position) => migrations[position]?.name !== name);
  if (foreign !== undefined) {
    throw new NewerData(
      `the database holds the migration ${foreign}, which this release does not know; start the release that wrote it`,
    );
  }
}

/**
 * Returns whether there is a row that no migration inserted, and that would be lost with the file.
 */
function hasData(raw: Database.Database): boolean {
  const tables = raw
    // Neither the tables of the engine nor those in which it keeps an index, which has rows before
    // any text.
    .prepare<[], { name: string }>(
      "select name from pragma_table_list where schema = 'main' and type = 'table'",
    )
    .all()
    .filter(({ name }) => !FILLED_BY_MIGRATIONS.has(name) && !name.startsWith("sqlite_"));
  return tables.some(({ name }) => raw.prepare(`select 1 from [${name}] limit 1`).get() !== undefined);
}

/**
 * Copies the committed state through a connection of its own, while the caller's open transaction
 * prevents every other process from writing. A copy of an earlier attempt is replaced: the file has
 * changed since.
 */
function copyBefore(raw: Database.Database, name: string): void {
  const copy = `${raw.name}.before-${name}`;
  const draft = `${copy}.draft`;
  rmSync(draft, { force: true });
  // Empty, so that the engine accepts it and keeps its mode.
  writeFileSync(draft, "", { mode: 0o600, flag: "wx" });
  const reading = new Database(raw.name, { readonly: true });
  try {
    reading.prepare("vacuum into ?").run(draft);
  } finally {
    reading.close();
  }
  renameSync(draft, copy);
}
