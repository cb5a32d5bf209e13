import { type Expression, type OperationNode, type RawBuilder, type SqlBool, sql } from "kysely";

const postgresForms = new WeakMap<OperationNode, OperationNode>();

/** Returns the PostgreSQL form of an expression of this file; undefined where both engines use the same form. */
export function postgresForm(node: OperationNode): OperationNode | undefined {
  return postgresForms.get(node);
}

/** Returns an expression that uses the first form on SQLite and the second on PostgreSQL. */
function perEngine<T>(sqlite: RawBuilder<T>, postgres: RawBuilder<T>): RawBuilder<T> {
  postgresForms.set(sqlite.toOperationNode(), postgres.toOperationNode());
  return sqlite;
}

/**
 * Returns the condition that a column's text contains `text`, character for character: without wildcards and case
 * folding, unlike LIKE.
 * @param column `table.column`; never input of a caller
 */
export function contains(column: `${string}.${string}`, text: string): Expression<SqlBool> {
  return perEngine(
    sql<SqlBool>`instr(${sql.ref(column)}, ${text}) > 0`,
    sql<SqlBool>`strpos(${sql.ref(column)}, ${text}) > 0`,
  );
}

/**
 * Returns the number of bytes of a text, which the engine knows without reading it.
 * @param column `table.column`; never input of a caller
 */
export function octets(column: `${string}.${string}`): RawBuilder<number> {
  return sql<number>`octet_length(${sql.ref(column)})`;
}

/** Returns a text of at most `maxBytes`; null for a longer one, which is then not read. */
export function shortText(column: `${string}.${string}`, maxBytes: number): RawBuilder<string | null> {
  return sql`case when ${octets(column)} <= ${sql.lit(maxBytes)} then ${sql.ref(column)} end`;
}

/**
 * Returns the text at a path of a JSON column, such as `["metadata", "name"]`; null if the path does not exist. The
 * text at the path must not contain U+0000, which PostgreSQL cannot represent; other texts of the JSON may.
 */
export function textAt(column: `${string}.${string}`, path: readonly string[]): RawBuilder<string | null> {
  return perEngine(
    sql<string | null>`json_extract(${sql.ref(column)}, ${sql.lit(["$", ...path].join("."))})`,
    sql<string | null>`cast(${withoutZeros(column)} as json) #>> ${sql.lit(`{${path.join(",")}}`)}`,
  );
}

/**
 * Returns a column's JSON with each U+0000 replaced by another character, since PostgreSQL rejects JSON that contains
 * it. After an even number of backslashes `\u0000` is that character; after an odd number it is literal text.
 */
function withoutZeros(column: `${string}.${string}`): RawBuilder<string> {
  const json = sql.ref(column);
  const replaced = sql`regexp_replace(${json}, ${sql.lit("(?<!\\\\)((?:\\\\\\\\)*)\\\\u0000")}, ${sql.lit("\\1\\\\ufffd")}, 'g')`;
  return sql`case when strpos(${json}, ${sql.lit("\\u0000")}) = 0 then ${json} else ${replaced} end`;
}

/**
 * Returns a column's text in the form in which a long one is read fastest, for textOf: as UTF-8 bytes on SQLite, and
 * unchanged on PostgreSQL, whose connection reads texts as they are stored.
 * @param column `table.column`; never input of a caller
 */
export function bytesOf(column: `${string}.${string}`): RawBuilder<Uint8Array | string> {
  return perEngine(
    sql<Uint8Array | string>`cast(${sql.ref(column)} as blob)`,
    sql<Uint8Array | string>`${sql.ref(column)}`,
  );
}

/**
 * Returns a column's value in a form for which SQLite uses no index, neither to find nor to sort. PostgreSQL gets the
 * plain column: its planner knows from its statistics when an index does not help.
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
 * Returns the column's number with only those bits that are set in another number.
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

/** The function that {@link checkDeadline} calls; it marks a query that can be aborted. */
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
 * Returns the condition that the columns of a row equal one of several keys, for an index that begins with these
 * columns. The SQL text is the same for any number of keys, so it is prepared and planned once.
 * @param columns never input of a caller
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
 * Returns JSON with the escapes of U+0000 replaced by the character itself, since PostgreSQL cannot convert the escape
 * to text. As a bound value, the character is sent in the form in which texts are stored (postgres/text.ts).
 */
function withPlainZeros(json: string): string {
  return json.replace(/(?<!\\)((?:\\\\)*)\\u0000/g, "$1\0");
}
