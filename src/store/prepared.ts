import type { Compilable, CompiledQuery, Kysely } from "kysely";
import type { Schema } from "./schema.ts";

/** Stands in a query for a value that each call supplies. */
class Placeholder {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

const PLACEHOLDERS: object = new Proxy({}, { get: (_, name) => new Placeholder(String(name)) });

/**
 * A query that is built and compiled once per connection and then run with the
 * values of each call; building anew costs more than SQLite takes to answer.
 * `build` gets placeholders in the shape of the parameters: it may pass them on
 * as values but not look at them.
 */
export function prepared<P extends object, R>(
  build: (db: Kysely<Schema>, parameters: P) => Compilable<R>,
): (db: Kysely<Schema>, parameters: P) => Promise<R[]> {
  const compiled = new WeakMap<Kysely<Schema>, CompiledQuery<R>>();
  return async (db, parameters) => {
    let query = compiled.get(db);
    if (!query) {
      query = build(db, PLACEHOLDERS as P).compile();
      compiled.set(db, query);
    }
    const values = query.parameters.map((value) =>
      value instanceof Placeholder ? (parameters as Record<string, unknown>)[value.name] : value,
    );
    return (await db.executeQuery<R>({ ...query, parameters: values })).rows;
  };
}
