import type { Compilable, CompiledQuery, Kysely } from "kysely";
import { builderOf } from "./query-builder.ts";
import type { Schema } from "./schema.ts";
import type { Reader } from "./store.ts";

/** A statement of an engine: takes the values of its parameters, returns the resulting rows. */
export type Statement = (values: readonly unknown[]) => unknown[] | Promise<unknown[]>;

const engines = new WeakMap<Kysely<Schema>, (sql: string) => Statement>();

/**
 * Makes the prepared queries of a connection run on its engine directly, without the query
 * builder's executor, which costs more than SQLite takes to find a row. The statements of `prepare`
 * must do exactly what the executor would have done.
 */
export function runDirectly(db: Kysely<Schema>, prepare: (sql: string) => Statement): void {
  engines.set(db, prepare);
}

const readers = new WeakMap<Kysely<Schema>, Kysely<Schema>>();

/**
 * Makes the prepared queries of `db` run as those of `reader`, which are compiled and prepared
 * already.
 */
export function readThrough(db: Kysely<Schema>, reader: Kysely<Schema>): void {
  readers.set(db, reader);
}

/** Represents in a query a value that each call supplies. */
class Placeholder {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

const PLACEHOLDERS: object = new Proxy({}, { get: (_, name) => new Placeholder(String(name)) });

type Run<P, R> = (parameters: P) => R[] | Promise<R[]>;

/**
 * Returns a query that is built and compiled once per connection and then run with the values of
 * each call; building it each time costs more than SQLite takes to answer. `build` gets
 * placeholders in the shape of the parameters: it may pass them on as values but not look at them.
 */
export function prepared<P extends object, R>(
  build: (db: Kysely<Schema>, parameters: P) => Compilable<R>,
): (db: Reader, parameters: P) => Promise<R[]> {
  const known = new WeakMap<Kysely<Schema>, Run<P, R>>();
  return async (reader, parameters) => {
    const connection = builderOf(reader);
    const db = readers.get(connection) ?? connection;
    let run = known.get(db);
    if (!run) {
      run = runner(db, build(db, PLACEHOLDERS as P).compile());
      known.set(db, run);
    }
    return run(parameters);
  };
}

function runner<P extends object, R>(db: Kysely<Schema>, query: CompiledQuery<R>): Run<P, R> {
  const valuesOf = (parameters: P) =>
    query.parameters.map((value) =>
      value instanceof Placeholder ? (parameters as Record<string, unknown>)[value.name] : value,
    );
  const statement = engines.get(db)?.(query.sql);
  if (statement) return (parameters) => statement(valuesOf(parameters)) as R[] | Promise<R[]>;
  return async (parameters) =>
    (await db.executeQuery<R>({ ...query, parameters: valuesOf(parameters) })).rows;
}
