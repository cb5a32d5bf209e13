import {
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
} from "kysely";
import type { Schema } from "../schema.ts";
import type { Scope, Store } from "../store.ts";
import { StablePlans } from "./dialect.ts";

/**
 * A database whose queries run on the thread of searches, each as a search of
 * its own: for lists that test row by row, with `inTime()` among what they ask.
 * It only reads, and each query fails as Store.search does.
 */
export function searching(store: Pick<Store, "search">, scope: Scope): Kysely<Schema> {
  const connection: DatabaseConnection = {
    async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
      const { rows } = await store.search("rows", scope, { sql, values: parameters });
      return { rows: rows as R[] };
    },
    // biome-ignore lint/correctness/useYield: the interface wants a generator.
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
