import { chmodSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import Database from "better-sqlite3";
import { Kysely, type KyselyPlugin } from "kysely";
import { ROWS_PER_CHECK } from "../expressions.ts";
import { runDirectly, type Statement } from "../prepared.ts";
import type { Schema } from "../schema.ts";
import { StableSqliteDialect } from "./dialect.ts";

/**
 * Time that a statement waits for another process (the command line next to a running server) to
 * finish its transaction before it fails as busy.
 */
const BUSY_TIMEOUT_MS = 5_000;

/** Interval between attempts at an operation for which the engine itself does not wait. */
export const RETRY_MS = 2;

/**
 * Number of statements that are kept prepared per connection; the list filters account for most of
 * them.
 */
const STATEMENT_CACHE_SIZE = 500;

export interface Connection {
  readonly raw: Database.Database;
  readonly db: Kysely<Schema>;
  /** Called before each query. */
  beforeQuery: () => void;
  /**
   * Called after each query of the builder or a prepared one; its result waits for the returned
   * promise.
   */
  afterQuery: () => Promise<void> | undefined;
  /**
   * Returns the rows of a query with `checkDeadline()` among its conditions, or undefined when it
   * tests more than about so many.
   */
  attempt(rows: number, sql: string, values: readonly unknown[]): unknown[] | undefined;
  /** Returns the number of rows that it has changed since it was opened. */
  changes(): number;
  close(): void;
}

/**
 * The error that ends a query which has tested its maximum number of rows; it is thrown through the
 * engine.
 */
class RowsExhausted extends Error {}

/**
 * Opens one connection to the database file. A reader rejects writes; a writer makes every commit
 * durable before it returns.
 * @param temporary where the engine keeps the pages for rolling back a savepoint
 * @throws when the file cannot be opened or is not a database
 */
export function openConnection(
  file: string,
  mode: "reader" | "writer",
  temporary: "MEMORY" | "FILE" = "MEMORY",
): Connection {
  const raw = new Database(file, { readonly: mode === "reader", timeout: BUSY_TIMEOUT_MS });
  if (mode === "writer") {
    // The folder may be older than the file and open to others; the log next to it gets the same
    // mode.
    chmodSync(file, 0o600);
    enableWriteAheadLog(raw);
    // The driver's default is NORMAL, which may lose the last commits on power loss.
    raw.pragma("synchronous = FULL");
    // Without this, "insert or replace" removes audit rows past the trigger that forbids it.
    raw.pragma("recursive_triggers = ON");
    // The pages for rolling back a savepoint; by default they go to a temporary file above 64 KiB.
    raw.pragma(`temp_store = ${temporary}`);
  }
  raw.pragma("foreign_keys = ON");
  let rowsLeft = Number.POSITIVE_INFINITY;
  raw.function("in_time", () => {
    rowsLeft -= ROWS_PER_CHECK;
    if (rowsLeft < 0) throw new RowsExhausted();
    return 1;
  });
  const database = withStatementCache(raw, () => connection.beforeQuery());
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
  const totalChanges = raw.prepare<[], number>("select total_changes()").pluck();
  const connection: Connection = {
    raw,
    db,
    beforeQuery: () => undefined,
    afterQuery: () => undefined,
    attempt,
    changes: () => totalChanges.get() ?? 0,
    close: () => raw.close(),
  };
  runDirectly(db, (sql) => toStatement(raw.prepare(sql), connection));
  return connection;
}

/** Runs a statement exactly as the query builder's SQLite dialect does. */
function toStatement(statement: Database.Statement, connection: Connection): Statement {
  return (values) => {
    connection.beforeQuery();
    const rows = statement.reader ? statement.all(values) : [];
    if (!statement.reader) statement.run(values);
    const pause = connection.afterQuery();
    return pause ? pause.then(() => rows) : rows;
  };
}

/**
 * Turns on write-ahead logging, so that readers continue while one connection writes. For a new
 * file this changes the file, and when two processes do it at once the engine fails one of them
 * without waiting.
 */
function enableWriteAheadLog(raw: Database.Database): void {
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

/**
 * Caches statements and evicts the oldest, because the query builder prepares every call again: a look-up by id takes
 * 11 microseconds when it is prepared each time, 0.8 otherwise.
 */
function withStatementCache(raw: Database.Database, beforeQuery: () => void) {
  const statements = new Map<string, Database.Statement>();
  return {
    close: () => raw.close(),
    prepare(sql: string): Database.Statement {
      // The query builder prepares a query right before it runs it.
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

/**
 * Begins a transaction that writes. It retries while another connection holds the lock: the
 * engine's own wait would block this thread, with its reads and with the very write that a second
 * store of this process may be ending. A command next to a busy server gets the lock more often
 * too, because the engine's waits of up to 100 ms would miss many free moments.
 * @param raw whose `busy_timeout` is 0
 * @throws the engine's error when the lock is not available in time
 */
export async function beginWrite(raw: Database.Database): Promise<void> {
  const began = performance.now();
  for (;;) {
    try {
      raw.exec("begin immediate");
      return;
    } catch (error) {
      if (!isBusy(error) || performance.now() - began > BUSY_TIMEOUT_MS) throw error;
    }
    await delay(RETRY_MS);
  }
}

function isBusy(error: unknown): boolean {
  return (error as { code?: string }).code?.startsWith("SQLITE_BUSY") ?? false;
}
