import { type Kysely, sql } from "kysely";
import { deleteOwned, type Reference, type TableMap } from "../owned-rows.ts";
import type { Schema } from "../schema.ts";

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
  await sql`set constraints all deferred`.execute(db);
  await deleteOwned(db, organizationId, tables, onTable);
}

async function findTablesWithOrganization(db: Kysely<Schema>): Promise<Set<string>> {
  const { rows } = await sql<{ name: string }>`
    select table_name as name from information_schema.columns
    where table_schema = current_schema and column_name = 'organization_id'
    order by table_name`.execute(db);
  return new Set(rows.map(({ name }) => name));
}

async function findReferences(db: Kysely<Schema>): Promise<TableMap["references"]> {
  const columns = (of: string, numbers: string) => sql`
    (select json_agg(attname order by position)::text
    from unnest(${sql.ref(numbers)}) with ordinality as numbers (number, position)
    join pg_attribute on attrelid = ${sql.ref(of)} and attnum = number)`;
  const { rows } = await sql<{ name: string; parent: string; from: string; to: string }>`
    select keyed.relname as name, referenced.relname as parent,
      ${columns("conrelid", "conkey")} as "from", ${columns("confrelid", "confkey")} as "to"
    from pg_constraint
    join pg_class as keyed on keyed.oid = conrelid
    join pg_class as referenced on referenced.oid = confrelid
    where contype = 'f' and keyed.relnamespace = current_schema::regnamespace`.execute(db);
  const references = new Map<string, Reference[]>();
  for (const { name, parent, from, to } of rows) {
    const ofTable = references.get(name) ?? [];
    references.set(name, [...ofTable, { parent, from: JSON.parse(from), to: JSON.parse(to) }]);
  }
  return references;
}
