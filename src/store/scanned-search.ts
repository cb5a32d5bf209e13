import { type Expression, type SqlBool, sql } from "kysely";
import { contains } from "./expressions.ts";

/**
 * Tables that are searched without an index of texts: a list tests row after row, in its order, until its page is
 * full. Where nothing matches, that is 10 ms for 10,000 rows and 145 ms for 100,000 (SQLite, rows of 1.5 KB, one
 * core of the machine of bench/RESULTS.md), off the main thread and in pieces if it takes longer (first-rows.ts), so
 * that only the caller waits. Projects, of which installations have a million, have an index: search-index.ts.
 */
type ScannedTable =
  /** The members of one organization: thousands at most. */
  | "account"
  /** Made by hand, and so few. */
  | "service_account"
  /** At most 1,000. */
  | "member_group"
  /** Made by hand, and so few. */
  | "security_policy"
  /** Made by hand: thousands at most. Their executions are many. */
  | "workflow"
  /** Any number, but the newest, which are tested first, are those that people look for; filters have indexes. */
  | "workflow_execution"
  /** As many as there are workspaces on the runners; filters have indexes. */
  | "environment";

/**
 * Returns the condition that the search text of a row contains a text. It holds one value per line: a search across
 * lines finds nothing, since no value contains a line break.
 *
 * @param search folded, not empty
 */
export function matchesSearch(table: ScannedTable, search: string): Expression<SqlBool> {
  return search.includes("\n") ? sql<SqlBool>`false` : contains(`${table}.search_text`, search);
}
