import {
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
} from "kysely";
import { DEADLINE } from "../../expressions.ts";
import { readThrough } from "../../prepared.ts";
import type { Schema } from "../../schema.ts";
import type { Scope } from "../../store.ts";
import type { Connection } from "../connection.ts";
import { StablePlans } from "../dialect.ts";
import type { Searches } from "./search-thread.ts";

/**
 * Number of rows that one query of a list tests on the main thread before it moves to the search
 * thread: a few milliseconds. A query that an index serves tests fewer, as a page has 101 at most.
 */
const MAIN_THREAD_ROWS = 1_000;

/**
 * Returns a database whose queries run on the search thread, each as a search of its own: for lists
 * that test row by row, with `checkDeadline()` among their conditions. It is read-only, and each
 * query fails as Searches.search does.
 */
export function searching(searches: Pick<Searches, "search">, scope: Scope): Kysely<Schema> {
  return readingBy(async ({ sql, parameters }) => {
    const { rows } = await searches.search("rows", scope, { sql, values: parameters });
    return rows;
  });
}

/** The connection and the scheduler of lists on the main thread. */
export interface ListReading extends Pick<Connection, "db"> {
  attempt(
    ...query: Parameters<Connection["attempt"]>
  ): Promise<unknown[] | undefined> | unknown[] | undefined;
}

/**
 * Returns a database for lists. Its queries begin on the main thread; one that tests many rows
 * without a match moves to the search thread, where it starts again and fails as Searches.search does.
 * A query without `checkDeadline()`, which nothing could end, is rejected; prepared ones run as
 * those of `reading`.
 */
export function listing(
  searches: Pick<Searches, "search">,
  reading: ListReading,
  scope: Scope,
): Kysely<Schema> {
  const db = readingBy(async ({ sql, parameters }) => {
    if (!sql.includes(DEADLINE)) throw new Error(`a query of a list cannot be ended: ${sql}`);
    const found = await reading.attempt(MAIN_THREAD_ROWS, sql, parameters);
    return found ?? (await searches.search("rows", scope, { sql, values: parameters })).rows;
  });
  readThrough(db, reading.db);
  return db;
}

function readingBy(read: (query: CompiledQuery) => Promise<unknown[]>): Kysely<Schema> {
  const connection: DatabaseConnection = {
    async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
      return { rows: (await read(query)) as R[] };
    },
    // biome-ignore lint/correctness/useYield: the interface requires a generator.
    async *streamQuery(): AsyncGenerator<never> {
      throw new Error("searches are not streamed");
    },
  };
  const refuse = async () => {
    throw new Error("searches have no transactions of several queries");
  };
  const driver: Driver = {
    init: async () => undefined,
    acquireConnection: async () => connection,
    beginTransaction: refuse,
    commitTransaction: refuse,
    rollbackTransaction: refuse,
    releaseConnection: async () => undefined,
    destroy: async () => undefined,
  };
  return new Kysely<Schema>({
    dialect: {
      createDriver: () => driver,
      createAdapter: () => new SqliteAdapter(),
      createQueryCompiler: () => new StablePlans(),
      createIntrospector: (db) => new SqliteIntrospector(db),
    },
  });
}
