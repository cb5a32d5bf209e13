import { type Kysely, sql } from "kysely";
import { deleteOwned, type Reference, type TableMap } from "../owned-rows.ts";
import type { Schema } from "../schema.ts";
import { searchTables } from "./search/search-tables.ts";

/**
 * Removes an organization and every row that it owns, in the open transaction.
 * @param onTable called for each table that holds such rows, before they are removed
 */
export async function deleteOwnedRows(
  db: Kysely<Schema>,
  organizationId: string,
  onTable: (table: string, rows: number) => void,
): Promise<void> {
  const tables = { carriers: await findTablesWithOrganization(db), references: await findReferences(db) };
  await sql`pragma defer_foreign_keys = on`.execute(db);
  const range = await searchTables(db)
    .selectFrom("project_search_range")
    .select("number")
    .where("organization_id", "=", organizationId)
    .executeTakeFirst();
  await deleteOwned(db, organizationId, tables, onTable);
  if (range) await rebuildSearch(db, onTable);
}

/** Returns the tables whose rows have the id of an organization. */
async function findTablesWithOrganization(db: Kysely<Schema>): Promise<Set<string>> {
  const { rows } = await sql<{ name: string }>`
    select tables.name from pragma_table_list as tables join pragma_table_info(tables.name) as columns
    where tables.schema = 'main' and tables.type = 'table' and columns.name = 'organization_id'
    order by tables.name`.execute(db);
  return new Set(rows.map(({ name }) => name));
}

async function findReferences(db: Kysely<Schema>): Promise<TableMap["references"]> {
  const { rows } = await sql<{ name: string; parent: string; from: string; to: string }>`
    select tables.name, keys."table" as parent,
      json_group_array(keys."from") as "from", json_group_array(keys."to") as "to"
    from pragma_table_list as tables join pragma_foreign_key_list(tables.name) as keys
    where tables.schema = 'main' and tables.type = 'table'
    group by tables.name, keys.id`.execute(db);
  const references = new Map<string, Reference[]>();
  for (const { name, parent, from, to } of rows) {
    const ofTable = references.get(name) ?? [];
    references.set(name, [...ofTable, { parent, from: JSON.parse(from), to: JSON.parse(to) }]);
  }
  return references;
}

/**
 * Rebuilds the index of project texts, because it can remove a row only by its text, and keeps the
 * rows of former texts.
 */
async function rebuildSearch(db: Kysely<Schema>, onTable: (table: string, rows: number) => void) {
  const { count } = await db
    .selectFrom("project")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  onTable("project_search", count);
  await sql`insert into project_search (project_search) values ('delete-all')`.execute(db);
  await sql`insert into project_search (rowid, grams)
    select search_row, search_grams(search_text) from project where search_row is not null
    order by search_row`.execute(db);
}
