import { chmodSync } from "node:fs";
import Database from "better-sqlite3";
import { Kysely, type KyselyPlugin } from "kysely";
import { runDirectly, type Statement } from "../prepared.ts";
import type { Schema } from "../schema.ts";
import { StableSqliteDialect } from "./dialect.ts";
import { ROWS_PER_QUESTION } from "./expressions.ts";

/**
 * How long a statement waits for another process (the command line beside a
 * running server) to finish its transaction before it fails as busy.
 */
export const BUSY_TIMEOUT_MS = 5_000;

/** How long to wait before asking again for what the engine itself does not wait for. */
export const RETRY_MS = 2;

/** Statements kept prepared per connection; the list filters make up most shapes. */
const STATEMENT_CACHE_SIZE = 500;

export interface Connection {
  readonly raw: Database.Database;
  readonly db: Kysely<Schema>;
  /** Called before each query. */
  beforeQuery: () => void;
  /** Called after each query of the builder or a prepared one, whose answer waits for what it gives. */
  afterQuery: () => Promise<void> | undefined;
  /** Returns the rows of a query with `checkDeadline()` among its conditions, or undefined when it tests more than about so many. */
  attempt(rows: number, sql: string, values: readonly unknown[]): unknown[] | undefined;
  close(): void;
}

/** Thrown through the engine to end a query that has tested as many rows as it may. */
class RowsExhausted extends Error {}

/**
 * Opens one connection to the database file. A reader refuses to write; a
 * writer makes every commit durable before it returns.
 *
 * @param temporary where the pages wait that a savepoint can be rolled back to
 * @throws when the file cannot be opened or is no database
 */
export function openConnection(
  file: string,
  mode: "reader" | "writer",
  temporary: "MEMORY" | "FILE" = "MEMORY",
): Connection {
  const raw = new Database(file, { readonly: mode === "reader", timeout: BUSY_TIMEOUT_MS });
  if (mode === "writer") {
    // The folder may be older than the file and open to others; the log beside it takes the same mode.
    chmodSync(file, 0o600);
    writeAhead(raw);
    // The driver's default is NORMAL, which may lose the last commits on power loss.
    raw.pragma("synchronous = FULL");
    // Without this, "insert or replace" removes audit rows past the trigger that forbids it.
    raw.pragma("recursive_triggers = ON");
    // What a savepoint can be rolled back to; the default writes it to a temporary file past 64 KiB.
    raw.pragma(`temp_store = ${temporary}`);
  }
  raw.pragma("foreign_keys = ON");
  let rowsLeft = Number.POSITIVE_INFINITY;
  raw.function("in_time", () => {
    rowsLeft -= ROWS_PER_QUESTION;
    if (rowsLeft < 0) throw new RowsExhausted();
    return 1;
  });
  const database = cached(raw, () => connection.beforeQuery());
  const pausing: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      await connection.afterQuery();
      return result;
    },
  };
  const plugins = mode === "writer" ? [pausing] : [];
  const db = new Kysely<Schema>({ dialect: new StableSqliteDialect({ database }), plugins });
  const attempt: Connection["attempt"] = (rows, sql, values) => {
    const statement = database.prepare(sql);
    rowsLeft = rows;
    try {
      return statement.all(values);
    } catch (error) {
      if (error instanceof RowsExhausted) return undefined;
      throw error;
    } finally {
      rowsLeft = Number.POSITIVE_INFINITY;
    }
  };
  const connection: Connection = {
    raw,
    db,
    beforeQuery: () => undefined,
    afterQuery: () => undefined,
    attempt,
    close: () => raw.close(),
  };
  runDirectly(db, (sql) => direct(raw.prepare(sql), connection));
  return connection;
}

/** The same as the query builder's dialect for SQLite does with a statement. */
function direct(statement: Database.Statement, connection: Connection): Statement {
  return (values) => {
    connection.beforeQuery();
    const rows = statement.reader ? statement.all(values) : [];
    if (!statement.reader) statement.run(values);
    const pause = connection.afterQuery();
    return pause ? pause.then(() => rows) : rows;
  };
}

/**
 * Keeps changes in a log beside the file, so that readers go on while one
 * writes. For a new file this is a change of the file, and when two processes
 * make it at once the engine fails one of them without waiting.
 */
function writeAhead(raw: Database.Database): void {
  const started = performance.now();
  for (;;) {
    try {
      raw.pragma("journal_mode = WAL");
      return;
    } catch (error) {
      const busy = (error as { code?: string }).code === "SQLITE_BUSY";
      if (!busy || performance.now() - started > BUSY_TIMEOUT_MS) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
    }
  }
}

/** The query builder prepares every call anew; this keeps the statements, dropping the oldest. */
function cached(raw: Database.Database, beforeQuery: () => void) {
  const statements = new Map<string, Database.Statement>();
  return {
    close: () => raw.close(),
    prepare(sql: string): Database.Statement {
      // It prepares a query right before it runs it.
      beforeQuery();
      const known = statements.get(sql);
      if (known) return known;
      const statement = raw.prepare(sql);
      if (statements.size >= STATEMENT_CACHE_SIZE) {
        const oldest = statements.keys().next().value;
        if (oldest !== undefined) statements.delete(oldest);
      }
      statements.set(sql, statement);
      return statement;
    },
  };
}
