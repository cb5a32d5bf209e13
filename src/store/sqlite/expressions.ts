import { type Expression, type RawBuilder, type SqlBool, sql } from "kysely";

/**
 * Returns the condition that a column's text contains `text`, character for character: without
 * wildcards and case folding, unlike LIKE.
 * @param column `table.column`; never a caller's words
 */
export function contains(column: `${string}.${string}`, text: string): Expression<SqlBool> {
  return sql<SqlBool>`instr(${sql.ref(column)}, ${text}) > 0`;
}

/**
 * Returns the number of bytes of a text, which the engine knows without reading it.
 * @param column `table.column`; never a caller's words
 */
export function octets(column: `${string}.${string}`): RawBuilder<number> {
  return sql<number>`octet_length(${sql.ref(column)})`;
}

/** Returns a text of at most `maxBytes`; null for a longer one, which is then not read. */
export function shortText(column: `${string}.${string}`, maxBytes: number): RawBuilder<string | null> {
  return sql`case when ${octets(column)} <= ${sql.lit(maxBytes)} then ${sql.ref(column)} end`;
}

/**
 * Returns the text at a path of a column of JSON, such as `$.metadata.name`; null where there is
 * none.
 */
export function textAt(column: `${string}.${string}`, path: `$.${string}`): RawBuilder<string | null> {
  return sql`json_extract(${sql.ref(column)}, ${sql.lit(path)})`;
}

/**
 * Returns a column's text as its bytes in UTF-8, for texts that may be long.
 * @param column `table.column`; never a caller's words
 */
export function bytesOf(column: `${string}.${string}`): RawBuilder<Uint8Array> {
  return sql`cast(${sql.ref(column)} as blob)`;
}

/** Returns a column's value in a form that no index finds or sorts. */
export function unindexed<T>(column: `${string}.${string}`): RawBuilder<T> {
  return sql<T>`+${sql.ref(column)}`;
}

/**
 * Average number of rows that a query tests between two calls of {@link checkDeadline}; a power of
 * two.
 */
export const ROWS_PER_CHECK = 64;

/** The function that {@link checkDeadline} calls, which identifies a query that can be ended. */
export const DEADLINE = "in_time()";

/**
 * Returns a condition that regularly checks, while a query tests rows, whether it may continue; the
 * connection defines `in_time()`, which throws when it may not. It must be the first of the
 * conditions: those after a false one are not evaluated.
 */
export function checkDeadline(): Expression<SqlBool> {
  return sql<SqlBool>`((random() & ${sql.lit(ROWS_PER_CHECK - 1)}) <> 0 or ${sql.raw(DEADLINE)})`;
}

/**
 * Returns the condition that columns of a row, compared one after the other, are above or below
 * values.
 */
export function compareRow(
  columns: readonly `${string}.${string}`[],
  operator: "<" | "<=" | ">" | ">=",
  values: readonly unknown[],
): Expression<SqlBool> {
  const refs = sql.join(columns.map((column) => sql.ref(column)));
  return sql<SqlBool>`(${refs}) ${sql.raw(operator)} (${sql.join([...values])})`;
}

/** Returns a list of texts or whole numbers in JSON as rows of a table with the column `value`. */
export function listAsRows<T extends string | number>(list: string): RawBuilder<{ value: T }> {
  return sql`json_each(${list})`;
}

/** Returns the values of a column as a list in JSON. */
export function listOf(column: `${string}.${string}`): RawBuilder<string> {
  return sql`json_group_array(${sql.ref(column)})`;
}
