import { sql } from "kysely";
import { builderOf } from "../query-builder.ts";
import type { Reader } from "../store.ts";

/** Columns with the id of the key that a value in their row was made with; each has an index. */
const COLUMNS = [
  ["token", "hmac_key_id"],
  ["host_token", "key_id"],
  ["secret", "key_id"],
  ["event_subscription", "key_id"],
  ["organization_invite", "key_id"],
  ["workflow_secret", "key_id"],
  ["workflow_secret", "previous_key_id"],
  ["audit_log", "key_id"],
  ["audit_anchor", "key_id"],
] as const;

/**
 * Returns the ids of all keys that any row of the database was made with, ascending. For the
 * system, so without a scope.
 */
export async function findNamedKeyIds(db: Reader): Promise<string[]> {
  const ids = new Set<string>();
  for (const column of COLUMNS) for (const id of await findNamedIn(db, ...column)) ids.add(id);
  // The record of the single key of the first release.
  const facts = await builderOf(db).selectFrom("fact").select("value").where("name", "=", "key_id").execute();
  for (const { value } of facts) ids.add(value);
  return [...ids].sort();
}

/** Skips from key to key along the index: there are few keys and may be millions of rows. */
async function findNamedIn(db: Reader, ...[table, column]: (typeof COLUMNS)[number]): Promise<string[]> {
  const [of, id] = [sql.table(table), sql.ref(column)];
  const { rows } = await sql<{ key_id: string }>`
    with recursive named (key_id) as (
      select min(${id}) from ${of} where ${id} is not null
      union all
      select (select min(${id}) from ${of} where ${id} is not null and ${id} > named.key_id)
      from named where named.key_id is not null
    )
    select key_id from named where key_id is not null`.execute(builderOf(db));
  return rows.map(({ key_id }) => key_id);
}
