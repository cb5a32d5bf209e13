import { CompiledQuery } from "kysely";
import { builderOf } from "../../query-builder.ts";
import type { Reader, Scope } from "../../store.ts";
import { searchProjects } from "./project-search.ts";

/** The limit of a search, which the search connection enforces. */
export interface SearchLimit {
  /**
   * Returns the result of `query`, or undefined when it tests more than about so many rows; it is
   * then aborted. The limit is in rows, not time: a busy machine must not turn a short strategy
   * into a long one.
   */
  attempt<T>(rows: number, query: () => Promise<T>): Promise<T | undefined>;
}

/**
 * The searches of the search thread, by name. Parameters and results are plain data: they cross
 * from one thread to another.
 */
export const SEARCHES = { projects: searchProjects, rows: findRows } satisfies Record<
  string,
  (db: Reader, scope: Scope, parameters: never, limit: SearchLimit) => Promise<object>
>;

export type SearchName = keyof typeof SEARCHES;
export type SearchParameters<N extends SearchName> = Parameters<(typeof SEARCHES)[N]>[2];
export type SearchResult<N extends SearchName> = Awaited<ReturnType<(typeof SEARCHES)[N]>>;

/**
 * A statement of the store, restricted to the scope's rows and with regular checks of the deadline.
 */
interface Query {
  readonly sql: string;
  readonly values: readonly unknown[];
}

/** Returns the rows of a query: plain data, as they come from the engine. */
async function findRows(db: Reader, _: Scope, { sql, values }: Query): Promise<{ rows: unknown[] }> {
  const { rows } = await builderOf(db).executeQuery<unknown>(CompiledQuery.raw(sql, [...values]));
  return { rows };
}
