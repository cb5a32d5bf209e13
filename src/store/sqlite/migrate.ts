import { renameSync, rmSync, writeFileSync } from "node:fs";
import Database from "better-sqlite3";
import { repositoryOfPage } from "../../domain/project/project.ts";
import { fold } from "../../domain/text/fold.ts";
import { NewerData, OlderData } from "../feature-level.ts";
import { countingProgress, type FillProgress, ROWS_PER_PORTION, type RowFill } from "../row-fill.ts";
import { storedKey } from "../workflow/workflow-trigger-event.ts";
import * as first from "./migrations/0001-0010/0001-first.ts";
import * as second from "./migrations/0001-0010/0002-record.ts";
import * as third from "./migrations/0001-0010/0003-workflow.ts";
import * as fourth from "./migrations/0001-0010/0004-member-list.ts";
import * as fifth from "./migrations/0001-0010/0005-agent.ts";
import * as sixth from "./migrations/0001-0010/0006-project-search.ts";
import * as seventh from "./migrations/0001-0010/0007-project-search-order.ts";
import * as eighth from "./migrations/0001-0010/0008-growth.ts";
import * as ninth from "./migrations/0001-0010/0009-source-setter.ts";
import * as tenth from "./migrations/0001-0010/0010-event-facts.ts";
import * as twelfth from "./migrations/0012-0020/0012-zone-and-conclusion.ts";
import * as thirteenth from "./migrations/0012-0020/0013-context-url-search.ts";
import * as fifteenth from "./migrations/0012-0020/0015-workflow-plan.ts";
import * as sixteenth from "./migrations/0012-0020/0016-organization-storage.ts";
import * as seventeenth from "./migrations/0012-0020/0017-organization-removal.ts";
import * as nineteenth from "./migrations/0012-0020/0019-token-hash.ts";
import * as twentieth from "./migrations/0012-0020/0020-feature-level.ts";
import * as twentyFirst from "./migrations/0021-0030/0021-workflow-progress.ts";
import * as twentySecond from "./migrations/0021-0030/0022-workflow-progress-rows.ts";
import * as twentyThird from "./migrations/0021-0030/0023-approval.ts";
import * as twentyFourth from "./migrations/0021-0030/0024-smaller-record.ts";
import * as twentyFifth from "./migrations/0021-0030/0025-runner-instance.ts";
import * as twentySixth from "./migrations/0021-0030/0026-agent-output-fold.ts";
import * as twentyNinth from "./migrations/0021-0030/0029-trigger-event-keys.ts";
import * as thirtieth from "./migrations/0021-0030/0030-secret.ts";
import * as thirtyFirst from "./migrations/0031-agent-mcp-servers.ts";
import * as thirtyThird from "./migrations/0033-agent-conversation.ts";
import * as thirtyFourth from "./migrations/0034-agent-slots.ts";
import * as thirtySixth from "./migrations/0036-environment-changes.ts";
import * as thirtySeventh from "./migrations/0037-environment-question.ts";
import * as thirtyEighth from "./migrations/0038-pull-request.ts";
import * as thirtyNinth from "./migrations/0039-agent-review-draft.ts";
import * as fortieth from "./migrations/0040-push.ts";
import * as fortySecond from "./migrations/0042-token-warning.ts";
import * as fortyThird from "./migrations/0043-organization-invite.ts";
import * as fortyFourth from "./migrations/0044-session.ts";
import * as fortyNinth from "./migrations/0049-provider-identity.ts";
import * as fiftyFirst from "./migrations/0051-group.ts";
import * as fiftySecond from "./migrations/0052-scim.ts";
import * as fiftySeventh from "./migrations/0057-environment-connection.ts";
import * as fiftyEighth from "./migrations/0058-fork-approval.ts";
import * as sixtieth from "./migrations/0060-role-assignment.ts";
import * as sixtySixth from "./migrations/0061-0070/0066-retention.ts";
import * as sixtyEighth from "./migrations/0061-0070/0068-environment-steering.ts";
import * as sixtySecond from "./migrations/0062-device-login.ts";
import * as sixtyThird from "./migrations/0063-service-account-trust.ts";
import * as seventyFirst from "./migrations/0071-0080/0071-kept-policies.ts";
import * as seventySeventh from "./migrations/0071-0080/0077-audit-export.ts";
import * as seventyNinth from "./migrations/0071-0080/0079-runner-state.ts";
import { lastMigrations } from "./migrations/0081-0090/last-migrations.ts";
import { searchTrigrams } from "./search/trigrams.ts";

export type Migration = { readonly name: string } & (TableMigration | FillMigration);

interface TableMigration {
  /**
   * Statements separated by semicolons; they run in one transaction, and may call `fold(text)`,
   * `search_grams(text)`, `stored_key(text)` and `page_repository(url)`.
   */
  readonly statements: string;
  /** Lowest feature level of servers that may keep running. Default: that of the data. */
  readonly lowestLevel?: number;
}

/** Rewrites rows in portions; if the process is killed in between, the next start continues. */
interface FillMigration {
  readonly fills: readonly RowFill[];
}

/** Listeners of {@link migrate} while it runs, and its rights. */
export interface MigrateOptions {
  /** Called for each migration that begins on a file with data, since it may take a minute. */
  readonly begins?: ((name: string) => void) | undefined;
  /** Called every few seconds while rows are rewritten. */
  readonly progresses?: FillProgress | undefined;
  /** False for a command next to a server, which may be of the previous release. Default true. */
  readonly raisesLevel?: boolean;
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
  twentyFirst,
  twentySecond,
  twentyThird,
  twentyFourth,
  twentyFifth,
  twentySixth,
  twentyNinth,
  thirtieth,
  thirtyFirst,
  thirtyThird,
  thirtyFourth,
  thirtySixth,
  thirtySeventh,
  thirtyEighth,
  thirtyNinth,
  fortieth,
  fortySecond,
  fortyThird,
  fortyFourth,
  fortyNinth,
  fiftyFirst,
  fiftySecond,
  fiftySeventh,
  fiftyEighth,
  sixtieth,
  sixtySecond,
  sixtyThird,
  sixtySixth,
  sixtyEighth,
  seventyFirst,
  seventySeventh,
  seventyNinth,
  ...lastMigrations,
];

/** Tables that have rows even in an unused file. */
const FILLED_BY_MIGRATIONS: ReadonlySet<string> = new Set(["migration", "installation"]);

/**
 * Migrates the file to the newest schema, each migration in its own transaction, or in several. Two processes may call
 * this at once: the second waits and runs the remaining migrations. A file with data is copied first, to
 * `FILE.before-NAME` with the name of the first migration that runs.
 * @returns the names of the migrations that ran
 * @throws OlderData when an older server could run that must not; an error when the file was written by a newer
 * release, or a statement fails. The file is then as the last complete migration left it.
 */
export function migrate(
  raw: Database.Database,
  migrations = MIGRATIONS,
  { begins = () => {}, progresses = () => {}, raisesLevel = true }: MigrateOptions = {},
): string[] {
  raw.function("fold", { deterministic: true }, (text) => fold(String(text)));
  raw.function("search_grams", { deterministic: true }, (text) => searchTrigrams(String(text)));
  raw.function("stored_key", { deterministic: true }, (key) => storedKey(String(key)));
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
    if ("fills" in migration) {
      if (hasData(raw)) begins(migration.name);
      for (const fill of migration.fills) fillRows(raw, fill, progresses);
    }
    raw.exec("begin immediate");
    try {
      const done = applied(raw);
      requireOwnDatabase(done, migrations);
      if (done[position] === undefined) {
        if ("statements" in migration) {
          if (hasData(raw)) {
            if (!raisesLevel) requireLevelOf(raw, migration);
            begins(migration.name);
            if (ran.length === 0) copyBefore(raw, migration.name);
          }
          raw.exec(migration.statements);
          if (migration.lowestLevel !== undefined) raiseLevelTo(raw, migration.lowestLevel);
        }
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

/** @throws OlderData when a migration would exclude servers that can use the data as it is */
function requireLevelOf(raw: Database.Database, { lowestLevel = 0 }: TableMigration): void {
  if (lowestLevel > readLevel(raw))
    throw new OlderData(
      "the data is of an earlier release, whose server may still run: start this one first",
    );
}

/** Returns the feature level of the file. */
export function readLevel(raw: Database.Database): number {
  return raw.prepare<[], number>("select feature_level from installation").pluck().get() ?? 1;
}

function raiseLevelTo(raw: Database.Database, level: number): void {
  raw.prepare("update installation set feature_level = max(feature_level, ?)").run(level);
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

/** Rewrites the remaining rows of a table in portions. Two processes may do it at once. */
function fillRows(raw: Database.Database, fill: RowFill, report: FillProgress): void {
  const { table, marker, rewrite } = fill;
  const total = raw
    .prepare<[], number>(`select count(*) from ${table} where ${marker} is null`)
    .pluck()
    .get();
  if (!total) return;
  const count = countingProgress(fill, total, report);
  const portion = raw.prepare<[string, number], { id: string; body: string }>(
    `select id, body from ${table} where id > ? and ${marker} is null order by id limit ?`,
  );
  let update: Database.Statement<unknown[]> | undefined;
  const rewritePortion = raw.transaction((after: string): string | undefined => {
    const rows = portion.all(after, ROWS_PER_PORTION);
    if (rows.length === 0) return undefined;
    for (const row of rows) {
      const columns = rewrite(row);
      const set = Object.keys(columns).map((column) => `${column} = ?`);
      update ??= raw.prepare(`update ${table} set ${set.join(", ")} where id = ?`);
      update.run(...Object.values(columns), row.id);
    }
    count(rows.length);
    return rows.at(-1)?.id;
  });
  for (let last: string | undefined = ""; last !== undefined; ) last = rewritePortion.immediate(last);
}
