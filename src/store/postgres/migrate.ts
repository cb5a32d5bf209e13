import { readdirSync, readFileSync } from "node:fs";
import type pg from "pg";
import { FEATURE_LEVEL } from "../feature-level.ts";
import { countingProgress, type FillProgress, ROWS_PER_PORTION, type RowFill } from "../row-fill.ts";
import { raiseLevelTo, requireLevel } from "./feature-level.ts";
import { lockForMigration, lockInstallation, unlockMigration } from "./locks.ts";
import { triggers } from "./migrations/0019-baseline/triggers.ts";
import * as twentieth from "./migrations/0020-0030/0020-feature-level.ts";
import * as twentyFirst from "./migrations/0020-0030/0021-workflow-progress.ts";
import * as twentySecond from "./migrations/0020-0030/0022-workflow-progress-rows.ts";
import * as twentyThird from "./migrations/0020-0030/0023-approval.ts";
import * as twentyFourth from "./migrations/0020-0030/0024-smaller-record.ts";
import * as twentyFifth from "./migrations/0020-0030/0025-runner-instance.ts";
import * as twentySixth from "./migrations/0020-0030/0026-agent-output-fold.ts";
import * as twentySeventh from "./migrations/0020-0030/0027-agent-output-fold-index.ts";
import * as twentyEighth from "./migrations/0020-0030/0028-project-indexes.ts";
import * as twentyNinth from "./migrations/0020-0030/0029-trigger-event-keys.ts";
import * as thirtieth from "./migrations/0020-0030/0030-secret.ts";
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
import * as sixtySeventh from "./migrations/0061-0070/0067-retention-index.ts";
import * as sixtyEighth from "./migrations/0061-0070/0068-environment-steering.ts";
import * as sixtySecond from "./migrations/0062-device-login.ts";
import * as sixtyThird from "./migrations/0063-service-account-trust.ts";
import * as seventyFirst from "./migrations/0071-0080/0071-kept-policies.ts";
import * as seventySecond from "./migrations/0071-0080/0072-held-work-index.ts";
import * as seventySeventh from "./migrations/0071-0080/0077-audit-export.ts";
import * as seventyEighth from "./migrations/0071-0080/0078-retry-index.ts";
import * as seventyNinth from "./migrations/0071-0080/0079-runner-state.ts";
import * as eightieth from "./migrations/0071-0080/0080-held-work-by-needs.ts";
import { lastMigrations } from "./migrations/0081-0090/last-migrations.ts";
import { isRetryable, isTimeout } from "./storage-problem.ts";

/** A migration with the number of the SQLite migration that creates the same tables. Servers keep writing meanwhile. */
export type Migration = { readonly name: string } & (TableMigration | IndexMigration | FillMigration);

/** Changes tables in one transaction. Servers of the previous release continue to work with the changed tables. */
interface TableMigration {
  readonly statements: string;
  /** Lowest feature level of servers that may keep running; others must be stopped. Default: that of the data. */
  readonly lowestLevel?: number;
}

/** Builds indexes outside of a transaction, while servers write. It has no counterpart in SQLite. */
interface IndexMigration {
  /** Statements that define the functions that the indexes use; they can be repeated. */
  readonly functions?: string;
  readonly indexes: readonly IndexDefinition[];
  /** Names of indexes that these replace. */
  readonly drops?: readonly string[];
  /** Statements about existing indexes; they can be repeated. */
  readonly settings?: string;
}

/** Rewrites rows in portions, while no server runs; if the process is killed in between, the next start continues. */
interface FillMigration {
  readonly fills: readonly RowFill[];
}

/** Listeners of {@link migrate} while it runs on data of an earlier release. */
export interface MigrateOptions {
  readonly begins?: ((name: string) => void) | undefined;
  /** Called every few seconds while rows are rewritten. */
  readonly progresses?: FillProgress | undefined;
}

interface IndexDefinition {
  readonly name: string;
  readonly isUnique?: boolean;
  /** Table and columns, such as `on project (organization_id, id)`. */
  readonly definition: string;
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
    twentieth,
    twentyFirst,
    twentySecond,
    twentyThird,
    twentyFourth,
    twentyFifth,
    twentySixth,
    twentySeventh,
    twentyEighth,
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
    sixtySeventh,
    sixtyEighth,
    seventyFirst,
    seventySecond,
    seventySeventh,
    seventyEighth,
    seventyNinth,
    eightieth,
    ...lastMigrations,
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
 * Migrates the schema to the newest form. Several servers may call this at the same time: they wait for each other.
 * Additions of a newer release stay: this release can use those tables while it knows the feature level of the data.
 * @returns the names of the migrations that ran
 * @throws NewerData; Error with a sentence for the operator when a migration cannot run now
 */
export async function migrate(
  client: pg.ClientBase,
  all = migrations(),
  { begins = () => {}, progresses = () => {} }: MigrateOptions = {},
): Promise<string[]> {
  await lockForMigration(client);
  try {
    await client.query(`create table if not exists migration (
      position bigint primary key,
      name text collate "C" not null unique
    )`);
    const { rows } = await client.query<{ name: string }>("select name from migration order by position");
    const foreign = rows.find(({ name }, position) => position < all.length && all[position]?.name !== name);
    if (foreign)
      throw new Error(
        `the database holds the migration ${foreign.name}, which this release does not know; start the release that wrote it`,
      );
    if (rows.some(({ name }) => name === twentieth.name)) await requireLevel(client);
    const ran: string[] = [];
    for (const [position, migration] of all.entries()) {
      if (position < rows.length) continue;
      if (rows.length > 0) begins(migration.name);
      if ("fills" in migration) {
        for (const fill of migration.fills) await fillRows(client, fill, progresses);
        await note(client, position, migration.name);
      } else if ("indexes" in migration) {
        await replaceIndexes(client, migration);
        await note(client, position, migration.name);
      } else {
        await changeTables(client, position, migration);
      }
      ran.push(migration.name);
    }
    // A new database has no rows for an older server to misread.
    if (rows.length === 0) await raiseLevelTo(client, FEATURE_LEVEL);
    return ran;
  } finally {
    await unlockMigration(client);
  }
}

const note = (client: pg.ClientBase, position: number, name: string) =>
  client.query("insert into migration (position, name) values ($1, $2)", [position, name]);

/** Maximum wait of a migration for the lock of a table, per attempt: later statements on the table queue behind it. */
const LOCK_TIMEOUT_MS = 3_000;

/** Attempts to change tables that are in use, with a second between them. */
const MAX_ATTEMPTS = 15;

async function changeTables(
  client: pg.ClientBase,
  position: number,
  migration: TableMigration & Pick<Migration, "name">,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    await client.query(`begin; set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
    try {
      // Earlier writes have ended by then, and later ones see the changed tables.
      await lockInstallation(client);
      const { lowestLevel, statements, name } = migration;
      if (lowestLevel !== undefined && !(await raiseLevelTo(client, lowestLevel)))
        throw new Error(
          "a server of an earlier release runs, which cannot use the tables of this one: stop all of them, then start this one",
        );
      await client.query(statements);
      await note(client, position, name);
      await client.query("commit");
      return;
    } catch (error) {
      await client.query("rollback");
      if (!isTimeout(error) && !isRetryable(error)) throw error;
      if (attempt === MAX_ATTEMPTS)
        throw new Error(
          `the tables could not be changed because others use them, such as a backup that runs for long: start again when it has ended (${(error as Error).message})`,
          { cause: error },
        );
    }
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
}

async function replaceIndexes(client: pg.ClientBase, migration: IndexMigration): Promise<void> {
  const { functions, indexes, drops = [], settings } = migration;
  if (functions !== undefined) await client.query(functions);
  for (const index of indexes) await buildIndex(client, index);
  for (const name of drops) await client.query(`drop index concurrently if exists ${name}`);
  if (settings !== undefined) await client.query(settings);
}

/** Builds a missing index. An invalid index is left from an interrupted build, and is removed first. */
async function buildIndex(
  client: pg.ClientBase,
  { name, isUnique, definition }: IndexDefinition,
): Promise<void> {
  const { rows } = await client.query<{ valid: boolean }>(
    "select indisvalid as valid from pg_index where indexrelid = to_regclass($1)",
    [name],
  );
  if (rows[0]?.valid) return;
  if (rows[0]) await client.query(`drop index concurrently ${name}`);
  await client.query(`create ${isUnique ? "unique " : ""}index concurrently ${name} ${definition}`);
}

type EarlierRow = Parameters<RowFill["rewrite"]>[0];

/** Rewrites the remaining rows of a table in portions, while no server uses it. */
async function fillRows(client: pg.ClientBase, fill: RowFill, report: FillProgress): Promise<void> {
  const { table, marker, rewrite } = fill;
  const counted = await client.query<{ total: string }>(
    `select count(*) as total from ${table} where ${marker} is null`,
  );
  const count = countingProgress(fill, Number(counted.rows[0]?.total), report);
  for (let last: string | undefined = ""; last !== undefined; ) {
    const { rows }: pg.QueryResult<EarlierRow> = await client.query<EarlierRow>(
      `select id, body from ${table} where id > $1 and ${marker} is null order by id limit $2`,
      [last, ROWS_PER_PORTION],
    );
    last = rows.at(-1)?.id;
    if (last === undefined) return;
    const columns = Object.keys(rewrite(rows[0] as EarlierRow));
    await client.query(
      `update ${table} set ${columns.map((column) => `${column} = filled.${column}`).join(", ")}
      from json_populate_recordset(null::${table}, $1) as filled where ${table}.id = filled.id`,
      [JSON.stringify(rows.map((row) => ({ id: row.id, ...rewrite(row) })))],
    );
    count(rows.length);
  }
}
