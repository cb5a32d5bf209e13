import { CompiledQuery, type Kysely } from "kysely";
import { searchProjects } from "./project/search/project-search.ts";
import type { Schema } from "./schema.ts";
import type { Scope } from "./store.ts";

/** What a search may do, which the connection of searches watches over. */
export interface SearchLimit {
  /**
   * What `query` finds, or undefined when it tests more than about so many rows;
   * then nothing of it goes on. Rows, not time: a busy machine must not turn a
   * short way into a long one.
   */
  attempt<T>(rows: number, query: () => Promise<T>): Promise<T | undefined>;
}

/**
 * What the thread of searches can do, by name. Parameters and results are plain
 * data: they cross from one thread to another.
 */
export const SEARCHES = { projects: searchProjects, rows: findRows } satisfies Record<
  string,
  (db: Kysely<Schema>, scope: Scope, parameters: never, limit: SearchLimit) => Promise<object>
>;

export type SearchName = keyof typeof SEARCHES;
export type SearchParameters<N extends SearchName> = Parameters<(typeof SEARCHES)[N]>[2];
export type SearchResult<N extends SearchName> = Awaited<ReturnType<(typeof SEARCHES)[N]>>;

/** A statement of the store's own, which asks for the scope's rows and now and then whether it may go on. */
interface Query {
  readonly sql: string;
  readonly values: readonly unknown[];
}

/** The rows of a query: plain data, as they come from the engine. */
async function findRows(db: Kysely<Schema>, _: Scope, { sql, values }: Query): Promise<{ rows: unknown[] }> {
  const { rows } = await db.executeQuery<unknown>(CompiledQuery.raw(sql, [...values]));
  return { rows };
}
