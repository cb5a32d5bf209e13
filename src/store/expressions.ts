import { type Expression, type OperationNode, type RawBuilder, type SqlBool, sql } from "kysely";

const postgresForms = new WeakMap<OperationNode, OperationNode>();

/** Returns the form for PostgreSQL of an expression of this file; undefined where both engines take the same. */
export function postgresForm(node: OperationNode): OperationNode | undefined {
  return postgresForms.get(node);
}

/** Returns an expression that SQLite gets in the first form and PostgreSQL in the second. */
function perEngine<T>(sqlite: RawBuilder<T>, postgres: RawBuilder<T>): RawBuilder<T> {
  postgresForms.set(sqlite.toOperationNode(), postgres.toOperationNode());
  return sqlite;
}

/**
 * Returns the condition that a column's text contains `text`, character for character: without
 * wildcards and case folding, unlike LIKE.
 * @param column `table.column`; never a caller's words
 */
export function contains(column: `${string}.${string}`, text: string): Expression<SqlBool> {
  return perEngine(
    sql<SqlBool>`instr(${sql.ref(column)}, ${text}) > 0`,
    sql<SqlBool>`strpos(${sql.ref(column)}, ${text}) > 0`,
  );
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
 * Returns the text at a path of a column of JSON, such as `["metadata", "name"]`; null where there is
 * none. The text itself has no U+0000, which texts of PostgreSQL cannot hold; others of the JSON may.
 */
export function textAt(column: `${string}.${string}`, path: readonly string[]): RawBuilder<string | null> {
  return perEngine(
    sql<string | null>`json_extract(${sql.ref(column)}, ${sql.lit(["$", ...path].join("."))})`,
    sql<string | null>`cast(${withoutZeros(column)} as json) #>> ${sql.lit(`{${path.join(",")}}`)}`,
  );
}

/**
 * Returns a column's JSON with another character in the place of each U+0000, for which PostgreSQL does not read any of it.
 * Behind an even number of backslashes, `\u0000` is that character, and behind an odd number it is text.
 */
function withoutZeros(column: `${string}.${string}`): RawBuilder<string> {
  const json = sql.ref(column);
  const replaced = sql`regexp_replace(${json}, ${sql.lit("(?<!\\\\)((?:\\\\\\\\)*)\\\\u0000")}, ${sql.lit("\\1\\\\ufffd")}, 'g')`;
  return sql`case when strpos(${json}, ${sql.lit("\\u0000")}) = 0 then ${json} else ${replaced} end`;
}

/**
 * Returns a column's text in the form in which a long one is read fastest, for textOf: as its bytes in UTF-8 on SQLite,
 * and on PostgreSQL as it is, since its connection reads texts as it stores them.
 * @param column `table.column`; never a caller's words
 */
export function bytesOf(column: `${string}.${string}`): RawBuilder<Uint8Array | string> {
  return perEngine(
    sql<Uint8Array | string>`cast(${sql.ref(column)} as blob)`,
    sql<Uint8Array | string>`${sql.ref(column)}`,
  );
}

/**
 * Returns a column's value in a form that no index of SQLite finds or sorts. PostgreSQL gets the column: its planner
 * knows from its statistics when an index is of no use.
 */
export function unindexed<T>(column: `${string}.${string}`): RawBuilder<T> {
  return perEngine(sql<T>`+${sql.ref(column)}`, sql<T>`${sql.ref(column)}`);
}

/**
 * Returns the condition that a column's number has all of some bits.
 * @param column `table.column`; never a caller's words
 * @param unset the number that represents null
 */
export function hasAllOf(column: `${string}.${string}`, bits: number, unset: number): Expression<SqlBool> {
  return sql<SqlBool>`(coalesce(${sql.ref(column)}, ${unset}) & ${bits}) = ${bits}`;
}

/**
 * Returns the column's number with those bits alone that another number has.
 * @param column as for {@link hasAllOf}
 */
export function onlyBits(column: `${string}.${string}`, bits: number): Expression<number> {
  return sql<number>`${sql.ref(column)} & ${bits}`;
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
 * connection to SQLite defines `in_time()`, which throws when it may not. It must be the first of the
 * conditions: those after a false one are not evaluated. PostgreSQL ends queries by itself, at their
 * statement_timeout.
 */
export function checkDeadline(): Expression<SqlBool> {
  return perEngine(
    sql<SqlBool>`((random() & ${sql.lit(ROWS_PER_CHECK - 1)}) <> 0 or ${sql.raw(DEADLINE)})`,
    sql<SqlBool>`true`,
  );
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

/**
 * Returns the condition that columns of a row have the values of one of some keys, for an index that begins with them. It
 * is the same text for any number of keys, so that it is prepared and planned once.
 * @param columns never a caller's words
 * @param keys one or more, each with a value for each column
 */
export function isOneOf(
  columns: readonly string[],
  keys: readonly (readonly (string | number)[])[],
): Expression<SqlBool> {
  const refs = sql.join(columns.map((column) => sql.ref(column)));
  const list = JSON.stringify(keys);
  const values = (valueAt: (place: number) => RawBuilder<unknown>) =>
    sql.join(columns.map((_, place) => valueAt(place)));
  const typeAt = (place: number) => sql.raw(typeof keys[0]?.[place] === "number" ? "bigint" : "text");
  return perEngine(
    sql<SqlBool>`(${refs}) in (select ${values((place) => sql`json_extract(value, ${sql.lit(`$[${place}]`)})`)}
      from json_each(${list}))`,
    sql<SqlBool>`(${refs}) in (select ${values((place) => sql`cast(key ->> ${sql.lit(place)} as ${typeAt(place)})`)}
      from jsonb_array_elements(cast(${withPlainZeros(list)} as jsonb)) as keys (key))`,
  );
}

/**
 * Returns JSON with U+0000 itself in the place of its escapes, of which PostgreSQL makes no text: as part of a value it is
 * sent in the form in which texts are stored (postgres/text.ts).
 */
function withPlainZeros(json: string): string {
  return json.replace(/(?<!\\)((?:\\\\)*)\\u0000/g, "$1\0");
}
