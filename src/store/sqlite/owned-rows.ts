import { type Kysely, type RawBuilder, sql } from "kysely";
import type { Schema } from "../schema.ts";

/** A foreign key: columns of a table that reference a row of another. */
interface Reference {
  readonly parent: string;
  readonly from: readonly string[];
  readonly to: readonly string[];
}

type References = ReadonlyMap<string, readonly Reference[]>;

/**
 * Removes an organization and every row that it owns, in the open transaction. Ownership is read
 * from the schema, so that no table is forgotten: rows with its id, and rows that reference those.
 *
 * The organization's row is removed first, which opens the triggers that protect its record;
 * references are checked when the transaction commits.
 * @param onTable called for each table that holds such rows, before they are removed
 */
export async function deleteOwnedRows(
  db: Kysely<Schema>,
  organizationId: string,
  onTable: (table: string, rows: number) => void,
): Promise<void> {
  const owned = await findOwned(db, organizationId);
  await sql`pragma defer_foreign_keys = on`.execute(db);
  const range = await db
    .selectFrom("project_search_range")
    .select("number")
    .where("organization_id", "=", organizationId)
    .executeTakeFirst();
  await db.deleteFrom("organization").where("id", "=", organizationId).execute();
  for (const [table, isOwned] of owned) {
    const rows = sql`from ${sql.table(table)} where ${isOwned}`;
    const [counted] = (await sql<{ count: number }>`select count(*) as count ${rows}`.execute(db)).rows;
    if (!counted?.count) continue;
    onTable(table, counted.count);
    await sql`delete ${rows}`.execute(db);
  }
  if (range) await rebuildSearch(db, onTable);
}

/**
 * Returns the tables with rows of organizations and the conditions that select them, those that
 * reference others first.
 */
async function findOwned(
  db: Kysely<Schema>,
  organizationId: string,
): Promise<Map<string, RawBuilder<unknown>>> {
  const references = await findReferences(db);
  const carriers = await findTablesWithOrganization(db);
  const found = new Map<string, RawBuilder<unknown> | undefined>();
  /** Parents are added to `found` before the tables that reference them. */
  const visit = (table: string): RawBuilder<unknown> | undefined => {
    if (found.has(table)) return found.get(table);
    const conditions = carriers.has(table) ? [sql`organization_id = ${organizationId}`] : [];
    for (const { parent, from, to } of references.get(table) ?? []) {
      if (parent === table) continue;
      const isOwned = visit(parent);
      if (!isOwned || carriers.has(table)) continue;
      const columns = (names: readonly string[]) => sql.join(names.map((name) => sql.ref(name)));
      conditions.push(
        sql`(${columns(from)}) in (select ${columns(to)} from ${sql.table(parent)} where ${isOwned})`,
      );
    }
    const condition = conditions.length > 0 ? sql`(${sql.join(conditions, sql` or `)})` : undefined;
    found.set(table, condition);
    return condition;
  };
  for (const table of new Set([...carriers, ...references.keys()])) visit(table);
  return new Map([...found].reverse().flatMap(([table, isOwned]) => (isOwned ? [[table, isOwned]] : [])));
}

/** Returns the tables whose rows have the id of an organization. */
async function findTablesWithOrganization(db: Kysely<Schema>): Promise<Set<string>> {
  const { rows } = await sql<{ name: string }>`
    select tables.name from pragma_table_list as tables join pragma_table_info(tables.name) as columns
    where tables.schema = 'main' and tables.type = 'table' and columns.name = 'organization_id'
    order by tables.name`.execute(db);
  return new Set(rows.map(({ name }) => name));
}

async function findReferences(db: Kysely<Schema>): Promise<References> {
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
