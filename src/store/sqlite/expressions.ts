import { type Expression, type RawBuilder, type SqlBool, sql } from "kysely";

/**
 * Whether a column's text contains `text`, character for character: no
 * wildcards and no folding of its own, unlike LIKE.
 *
 * @param column `table.column`; never a caller's words
 */
export function contains(column: `${string}.${string}`, text: string): Expression<SqlBool> {
  return sql<SqlBool>`instr(${sql.ref(column)}, ${text}) > 0`;
}

/**
 * Bytes of a text, which the engine knows without reading it.
 *
 * @param column `table.column`; never a caller's words
 */
export function octets(column: `${string}.${string}`): RawBuilder<number> {
  return sql<number>`octet_length(${sql.ref(column)})`;
}

/** A text of at most `maxBytes`; null for a longer one, which is not read then. */
export function shortText(column: `${string}.${string}`, maxBytes: number): RawBuilder<string | null> {
  return sql`case when ${octets(column)} <= ${sql.lit(maxBytes)} then ${sql.ref(column)} end`;
}

/** The text at a path of a column of JSON, such as `$.metadata.name`; null where there is none. */
export function textAt(column: `${string}.${string}`, path: `$.${string}`): RawBuilder<string | null> {
  return sql`json_extract(${sql.ref(column)}, ${sql.lit(path)})`;
}

/**
 * A column's text as its bytes in UTF-8, for texts that may be long.
 *
 * @param column `table.column`; never a caller's words
 */
export function bytesOf(column: `${string}.${string}`): RawBuilder<Uint8Array> {
  return sql`cast(${sql.ref(column)} as blob)`;
}

/** A column's value, which no index finds or sorts. */
export function unindexed<T>(column: `${string}.${string}`): RawBuilder<T> {
  return sql<T>`+${sql.ref(column)}`;
}

/** How many rows a query tests, on average, between two questions of {@link checkDeadline}; a power of two. */
export const ROWS_PER_QUESTION = 64;

/** The function that {@link checkDeadline} calls, by which a query that can be ended is known. */
export const DEADLINE = "in_time()";

/**
 * Asks now and then, while a query tests rows, whether it may go on; the
 * connection defines `in_time()`, which throws when it may not. It comes first
 * among the conditions: what comes behind one that does not hold is not asked.
 */
export function checkDeadline(): Expression<SqlBool> {
  return sql<SqlBool>`((random() & ${sql.lit(ROWS_PER_QUESTION - 1)}) <> 0 or ${sql.raw(DEADLINE)})`;
}

/** Whether columns of a row, compared one after the other, are above or below values. */
export function compareRow(
  columns: readonly `${string}.${string}`[],
  operator: "<" | "<=" | ">" | ">=",
  values: readonly unknown[],
): Expression<SqlBool> {
  const refs = sql.join(columns.map((column) => sql.ref(column)));
  return sql<SqlBool>`(${refs}) ${sql.raw(operator)} (${sql.join([...values])})`;
}

/** A list of texts or whole numbers in JSON as rows of a table with the column `value`. */
export function listAsRows<T extends string | number>(list: string): RawBuilder<{ value: T }> {
  return sql`json_each(${list})`;
}

/** The values of a column as a list in JSON. */
export function listOf(column: `${string}.${string}`): RawBuilder<string> {
  return sql`json_group_array(${sql.ref(column)})`;
}

/** Rows of project_search by their numbers, both ends among them. */
export type RowRange = readonly [first: number, last: number];

/** Whether a row of project_search is one of a range and among those that a query of grams names. */
export function hasGrams(query: string, [first, last]: RowRange): Expression<SqlBool> {
  // The driver binds numbers as reals, and of those the index reads no bounds.
  return sql<SqlBool>`project_search match ${query}
    and project_search.rowid between cast(${first} as integer) and cast(${last} as integer)`;
}
