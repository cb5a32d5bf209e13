import { chmodSync } from "node:fs";
import Database from "better-sqlite3";
import { Kysely, SqliteDialect } from "kysely";
import type { Schema } from "../schema.ts";

/**
 * How long a statement waits for another process (the command line beside a
 * running server) to finish its transaction before it fails as busy.
 */
const BUSY_TIMEOUT_MS = 5_000;

/** How long to wait before asking again for what the engine itself does not wait for. */
const RETRY_MS = 2;

/** Statements kept prepared per connection; the list filters make up most shapes. */
const STATEMENT_CACHE_SIZE = 500;

export interface Connection {
  readonly raw: Database.Database;
  readonly db: Kysely<Schema>;
  close(): void;
}

/**
 * Opens one connection to the database file. A reader refuses to write; a
 * writer makes every commit durable before it returns.
 *
 * @throws when the file cannot be opened or is no database
 */
export function openConnection(file: string, mode: "reader" | "writer"): Connection {
  const raw = new Database(file, { readonly: mode === "reader", timeout: BUSY_TIMEOUT_MS });
  if (mode === "writer") {
    // The folder may be older than the file and open to others; the log beside it takes the same mode.
    chmodSync(file, 0o600);
    writeAhead(raw);
    // The driver's default is NORMAL, which may lose the last commits on power loss.
    raw.pragma("synchronous = FULL");
    // Without this, "insert or replace" removes audit rows past the trigger that forbids it.
    raw.pragma("recursive_triggers = ON");
  }
  raw.pragma("foreign_keys = ON");
  return {
    raw,
    db: new Kysely<Schema>({ dialect: new SqliteDialect({ database: cached(raw) }) }),
    close: () => raw.close(),
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
function cached(raw: Database.Database) {
  const statements = new Map<string, Database.Statement>();
  return {
    close: () => raw.close(),
    prepare(sql: string) {
      const known = statements.get(sql);
      if (known) return known as never;
      const statement = raw.prepare(sql);
      if (statements.size >= STATEMENT_CACHE_SIZE) {
        const oldest = statements.keys().next().value;
        if (oldest !== undefined) statements.delete(oldest);
      }
      statements.set(sql, statement);
      return statement as never;
    },
  };
}
