import { type Expression, type SqlBool, sql } from "kysely";
import { contains } from "./expressions.ts";

/**
 * Tables that are searched without a text index: a list tests row after row, in its order, until its page is full.
 * Where nothing matches, that takes 10 ms for 10,000 rows and 145 ms for 100,000 (SQLite, rows of 1.5 KB, one core of
 * the machine of bench/RESULTS.md). A longer search runs off the main thread and in pieces (first-rows.ts), so only
 * the caller waits. Projects, of which an installation may have a million, have an index: search-index.ts.
 */
type ScannedTable =
  /** The members of one organization: thousands at most. */
  | "account"
  /** Created manually, and therefore few. */
  | "service_account"
  /** At most 1,000. */
  | "member_group"
  /** Created manually, and therefore few. */
  | "security_policy"
  /** Created manually: thousands at most. Their executions are many. */
  | "workflow"
  /** Any number, but people mostly look for the newest, which are tested first; filters have indexes. */
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
