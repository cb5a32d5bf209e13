import { type Kysely, type RawBuilder, sql } from "kysely";
import type { Schema } from "./schema.ts";

/** A foreign key: columns of a table that reference a row of another. */
export interface Reference {
  readonly parent: string;
  readonly from: readonly string[];
  readonly to: readonly string[];
}

/** The tables of a database as its engine describes them. */
export interface TableMap {
  /** Tables whose rows have the id of an organization. */
  readonly carriers: ReadonlySet<string>;
  /** Foreign keys by table; a table without foreign keys is absent. */
  readonly references: ReadonlyMap<string, readonly Reference[]>;
}

/**
 * Removes an organization and every row that it owns, in the open transaction; foreign keys are checked when it
 * commits. Ownership is read from the schema, so that no table is forgotten: rows with the organization's id, and rows
 * that reference those.
 *
 * The organization's row is removed first, which disables the triggers that protect its record.
 * @param onTable called for each table that holds such rows, before they are removed
 */
export async function deleteOwned(
  db: Kysely<Schema>,
  organizationId: string,
  tables: TableMap,
  onTable: (table: string, rows: number) => void,
): Promise<void> {
  await db.deleteFrom("organization").where("id", "=", organizationId).execute();
  for (const [table, isOwned] of findOwned(organizationId, tables)) {
    const rows = sql`from ${sql.table(table)} where ${isOwned}`;
    const [counted] = (await sql<{ count: number }>`select count(*) as count ${rows}`.execute(db)).rows;
    if (!counted?.count) continue;
    onTable(table, counted.count);
    await sql`delete ${rows}`.execute(db);
  }
}

/**
 * Returns the tables with rows of organizations and the conditions that select them, those that
 * reference others first.
 */
function findOwned(
  organizationId: string,
  { carriers, references }: TableMap,
): Map<string, RawBuilder<unknown>> {
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
