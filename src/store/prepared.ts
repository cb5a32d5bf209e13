import type { Compilable, CompiledQuery, Kysely } from "kysely";
import { builderOf } from "./query-builder.ts";
import type { Schema } from "./schema.ts";
import type { Reader } from "./store.ts";

/** A statement of an engine: takes the values of its parameters, returns the resulting rows. */
export type Statement = (values: readonly unknown[]) => unknown[] | Promise<unknown[]>;

const engines = new WeakMap<Kysely<Schema>, (sql: string) => Statement>();

/**
 * Makes the prepared queries of a connection run on its engine directly. The query builder's executor costs more than
 * SQLite takes to find a row. The statements of `prepare` must do exactly what the executor would have done.
 */
export function runDirectly(db: Kysely<Schema>, prepare: (sql: string) => Statement): void {
  engines.set(db, prepare);
}

const readers = new WeakMap<Kysely<Schema>, Kysely<Schema>>();

/** Makes the prepared queries of `db` run as those of `reader`, which are already compiled and prepared. */
export function readThrough(db: Kysely<Schema>, reader: Kysely<Schema>): void {
  readers.set(db, reader);
}

/** Represents in a query a value that each call supplies; `row` is its position among several rows. */
class Placeholder {
  readonly row: number;
  readonly name: string;
  constructor(row: number, name: string) {
    this.row = row;
    this.name = name;
  }
}

function placeholdersOf<P extends object>(row: number): P {
  return new Proxy({} as P, { get: (_, name) => new Placeholder(row, String(name)) });
}

type Run<P, R> = (parameters: P) => R[] | Promise<R[]>;

type ValueIn<P> = (parameters: P, placeholder: Placeholder) => unknown;

/**
 * Returns a query that is built and compiled once per connection and then run with the values of each call; building
 * it each time costs more than SQLite takes to run it. `build` gets placeholders in the shape of the parameters: it
 * may pass them on as values but not inspect them.
 */
export function prepared<P extends object, R>(
  build: (db: Kysely<Schema>, parameters: P) => Compilable<R>,
): (db: Reader, parameters: P) => Promise<R[]> {
  return compiledOnce(
    (db) => build(db, placeholdersOf<P>(0)).compile(),
    (parameters, { name }) => (parameters as Record<string, unknown>)[name],
  );
}

/**
 * Maximum number of rows that one statement inserts or updates. For a statement with triggers the engine copies every
 * page that it changes, so that it can undo this statement alone: 1,000 audit rows took 21 ms in statements of one
 * row, 11 of ten and 9 of fifty. Many commits have twenty rows, few have fifty.
 */
export const ROWS_PER_RUN = 20;

/**
 * Returns a query of any number of rows, in as few statements as {@link ROWS_PER_RUN} allows. The statement for each
 * number of rows is built and compiled once per connection. `build` gets one or more rows of placeholders, each as
 * {@link prepared} provides them.
 */
export function preparedForRows<P extends object, R = unknown>(
  build: (db: Kysely<Schema>, rows: P[]) => Compilable<R>,
): (db: Reader, rows: readonly P[]) => Promise<R[]> {
  const known: ((db: Reader, rows: readonly P[]) => Promise<R[]>)[] = [];
  const statementOf = (count: number) => {
    const placeholders = Array.from({ length: count }, (_, row) => placeholdersOf<P>(row));
    return compiledOnce<readonly P[], R>(
      (db) => build(db, placeholders).compile(),
      (rows, { name, row }) => (rows[row] as Record<string, unknown>)[name],
    );
  };
  return async (db, rows) => {
    const results: R[] = [];
    for (let next = 0; next < rows.length; next += ROWS_PER_RUN) {
      const part = rows.slice(next, next + ROWS_PER_RUN);
      known[part.length] ??= statementOf(part.length);
      results.push(...((await known[part.length]?.(db, part)) ?? []));
    }
    return results;
  };
}

function compiledOnce<P, R>(
  compile: (db: Kysely<Schema>) => CompiledQuery<R>,
  valueIn: ValueIn<P>,
): (db: Reader, parameters: P) => Promise<R[]> {
  const known = new WeakMap<Kysely<Schema>, Run<P, R>>();
  return async (reader, parameters) => {
    const connection = builderOf(reader);
    const db = readers.get(connection) ?? connection;
    let run = known.get(db);
    if (!run) {
      run = runner(db, compile(db), valueIn);
      known.set(db, run);
    }
    return run(parameters);
  };
}

function runner<P, R>(db: Kysely<Schema>, query: CompiledQuery<R>, valueIn: ValueIn<P>): Run<P, R> {
  const sources = query.parameters.map((value) =>
    value instanceof Placeholder ? value : { name: undefined, value },
  );
  const valuesOf = (parameters: P) =>
    sources.map((source) => (source.name === undefined ? source.value : valueIn(parameters, source)));
  const statement = engines.get(db)?.(query.sql);
  if (statement) return (parameters) => statement(valuesOf(parameters)) as R[] | Promise<R[]>;
  return async (parameters) =>
    (await db.executeQuery<R>({ ...query, parameters: valuesOf(parameters) })).rows;
}
