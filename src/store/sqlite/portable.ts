import { writeFileSync } from "node:fs";
import Database from "better-sqlite3";
import type { AnyRow, RowSink, RowSource } from "../copy-rows.ts";
import { draftOf, publishDraft, removeDraft, requireCurrentDatabase } from "./backup.ts";
import { migrate } from "./migrate.ts";
import { RANGE_ROWS } from "./search/project-texts.ts";

/** Number of rows per batch that is read and passed on. */
const ROWS_PER_BATCH = 500;

/** Tables that are not copied: the schema's own, and the text index, which is built from the rows. */
const NOT_COPIED = /^(migration|sqlite_.*|project_search.*)$/;

/** Opens a consistent snapshot of a database file for reading. */
export async function readFile<T>(file: string, use: (source: RowSource) => Promise<T>): Promise<T> {
  const raw = new Database(file, { readonly: true });
  try {
    requireCurrentDatabase(raw, file);
    raw.exec("begin");
    return await use({
      tables: async () => tablesOf(raw),
      async *rows(table, columns) {
        const names = columns.map(quoted).join(", ");
        let batch: AnyRow[] = [];
        for (const row of raw.prepare<[], AnyRow>(`select ${names} from ${quoted(table)}`).iterate()) {
          batch.push(row);
          if (batch.length < ROWS_PER_BATCH) continue;
          yield batch;
          batch = [];
        }
        if (batch.length > 0) yield batch;
      },
    });
  } finally {
    raw.close();
  }
}

/**
 * Writes a new database file, readable by its owner only. It appears complete and durable when `fill` has ended, or
 * not at all.
 * @throws Error when the file exists
 */
export async function writeFile<T>(file: string, fill: (target: RowSink) => Promise<T>): Promise<T> {
  const draft = draftOf(file);
  removeDraft(file);
  writeFileSync(draft, "", { mode: 0o600, flag: "wx" });
  const raw = new Database(draft);
  try {
    migrate(raw);
    raw.exec("begin");
    const result = await fillWithoutTriggers(raw, fill);
    indexTexts(raw);
    raw.exec("commit");
    const damage = raw.pragma("foreign_key_check") as unknown[];
    if (damage.length > 0) throw new Error(`${damage.length} rows refer to rows that do not exist`);
    raw.close();
    publishDraft(file);
    return result;
  } finally {
    raw.close();
    removeDraft(file);
  }
}

/** The triggers reject changed audit rows and count stored bytes, which the copied rows already contain. */
async function fillWithoutTriggers<T>(
  raw: Database.Database,
  fill: (target: RowSink) => Promise<T>,
): Promise<T> {
  const triggers = raw
    .prepare<[], { name: string; sql: string }>("select name, sql from sqlite_master where type = 'trigger'")
    .all();
  for (const { name } of triggers) raw.exec(`drop trigger ${quoted(name)}`);
  raw.exec("delete from installation");
  raw.pragma("defer_foreign_keys = on");
  const result = await fill({
    tables: async () => tablesOf(raw),
    async insert(table, columns, rows) {
      const places = columns.map(() => "?").join(", ");
      const insert = raw.prepare(
        `insert into ${quoted(table)} (${columns.map(quoted).join(", ")}) values (${places})`,
      );
      for (const row of rows) insert.run(columns.map((column) => row[column]));
    },
    count: async (table) =>
      raw
        .prepare<[], number>(`select count(*) from ${quoted(table)}`)
        .pluck()
        .get() ?? 0,
  });
  for (const { sql } of triggers) raw.exec(sql);
  return result;
}

/** Builds the index of project texts; each organization gets its own range of rows. */
function indexTexts(raw: Database.Database): void {
  const projects = raw.prepare<[], { id: string; organization_id: string }>(
    "select id, organization_id from project order by organization_id, id",
  );
  const enter = raw.prepare(
    `insert into project_search (rowid, grams)
    select search_row, search_grams(search_text) from project where id = ?`,
  );
  const place = raw.prepare("update project set search_row = ? where id = ?");
  const range = raw.prepare(
    `insert into project_search_range (organization_id, number, last_row) values (?, ?, ?)
    on conflict (organization_id) do update set last_row = excluded.last_row`,
  );
  let [number, row, organization] = [0, 0, ""];
  for (const { id, organization_id: owner } of projects.all()) {
    if (owner !== organization) {
      organization = owner;
      number += 1;
      row = number * RANGE_ROWS;
    }
    row += 1;
    // The driver binds numbers as reals, which the index does not accept.
    place.run(BigInt(row), id);
    enter.run(id);
    range.run(owner, number, row);
  }
}

function tablesOf(raw: Database.Database): ReadonlyMap<string, readonly string[]> {
  const rows = raw
    .prepare<[], { table: string; column: string }>(
      `select tables.name as "table", columns.name as "column"
      from pragma_table_list as tables join pragma_table_info(tables.name) as columns
      where tables.schema = 'main' and tables.type = 'table' order by tables.name, columns.cid`,
    )
    .all();
  const tables = new Map<string, string[]>();
  for (const { table, column } of rows)
    if (!NOT_COPIED.test(table)) tables.set(table, [...(tables.get(table) ?? []), column]);
  return tables;
}

const quoted = (name: string) => `"${name}"`;
