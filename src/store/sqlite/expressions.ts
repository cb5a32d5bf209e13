import { type Expression, type SqlBool, sql } from "kysely";

/**
 * Whether a column's text contains `text`, character for character: no
 * wildcards and no folding of its own, unlike LIKE.
 *
 * @param column `table.column`; never a caller's words
 */
export function contains(column: `${string}.${string}`, text: string): Expression<SqlBool> {
  return sql<SqlBool>`instr(${sql.ref(column)}, ${text}) > 0`;
}
