import { type RawBuilder, sql } from "kysely";

/** Returns a list of texts or whole numbers in JSON as rows of a table with the column `value`. */
export function listAsRows<T extends string | number>(list: string): RawBuilder<{ value: T }> {
  return sql`json_each(${list})`;
}

/** Returns the values of a column as a list in JSON. */
export function listOf(column: `${string}.${string}`): RawBuilder<string> {
  return sql`json_group_array(${sql.ref(column)})`;
}
