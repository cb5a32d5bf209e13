import { type Kysely, sql } from "kysely";
import type { Schema } from "./schema.ts";

/** Tables whose rows name the key that they were made with; each has an index over it. */
const TABLES = ["token", "host_token", "audit_log"] as const;

/** The ids of all keys that any row of the database was made with, ascending. For the system, so without a scope. */
export async function findNamedKeyIds(db: Kysely<Schema>): Promise<string[]> {
  const ids = new Set<string>();
  for (const table of TABLES) for (const id of await findNamedIn(db, table)) ids.add(id);
  // What the first release wrote down about its one key.
  const facts = await db.selectFrom("fact").select("value").where("name", "=", "key_id").execute();
  for (const { value } of facts) ids.add(value);
  return [...ids].sort();
}

/** Goes from key to key along the index: there are few keys and may be millions of rows. */
async function findNamedIn(db: Kysely<Schema>, table: (typeof TABLES)[number]): Promise<string[]> {
  const { rows } = await sql<{ key_id: string }>`
    with recursive named (key_id) as (
      select min(key_id) from ${sql.table(table)}
      union all
      select (select min(key_id) from ${sql.table(table)} where key_id > named.key_id)
      from named where named.key_id is not null
    )
    select key_id from named where key_id is not null`.execute(db);
  return rows.map(({ key_id }) => key_id);
}
