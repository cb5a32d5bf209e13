import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type Database from "better-sqlite3";
import { StoreMeasures } from "../../domain/measures.ts";
import { FEATURE_LEVEL, levelProblem, NewerData } from "../feature-level.ts";
import type { AuditSeal } from "../record/record.ts";
import {
  type Actor,
  BOOKKEEPING_COLUMNS,
  type BookkeepingUpdate,
  OPERATOR,
  type Store,
  type WriteOptions,
  type WriteTransaction,
} from "../store.ts";
import { Checkpoints } from "./checkpoint/checkpoints.ts";
import { exitOnSyncFailure, Maintenance } from "./checkpoint/maintenance-thread.ts";
import { openConnection } from "./connection.ts";
import { DATABASE_FILE } from "./database-file.ts";
import { type MigrateOptions, migrate, readLevel } from "./migrate.ts";
import { ListScheduler } from "./search/list-turns.ts";
import { Searches } from "./search/search-thread.ts";
import { type ListReading, listing, searching } from "./search/searching.ts";
import { TextIndex } from "./search/text-index.ts";
import { Snapshot } from "./snapshot.ts";
import { isSyncFailure, storageProblem } from "./storage-problem.ts";
import { GROUP_MS, Writer } from "./writer.ts";

export { DATABASE_FILE };

export interface StoreOptions {
  /** Folder of the database; created if it does not exist. */
  readonly dataDir: string;
  /** Milliseconds since 1970 UTC. */
  readonly now: () => number;
  readonly newId: () => string;
  /** Makes the hashes of audit rows. */
  readonly audit: AuditSeal;
  /**
   * The operating system's user who runs the process, recorded as the author of the operator's changes. Default none.
   */
  readonly operatorName?: string;
  /** Maximum bytes that one organization may store. Default: unlimited, as for the operator's commands. */
  readonly quotaBytes?: number;
  /** False for a command next to a server, which may be of the previous release. Default true. */
  readonly raisesLevel?: boolean;
  /** Called for each migration that begins on data of an earlier release; it may take a minute. */
  readonly onMigration?: MigrateOptions["begins"];
  /** Called every few seconds with how many rows of a table a migration has rewritten. */
  readonly onMigratedRows?: MigrateOptions["progresses"];
  /** True if a write may change more than fits in memory. Default false. */
  readonly hasLargeWrites?: boolean;
  /** False gives each write a commit of its own. Default true. */
  readonly grouping?: boolean;
  /** Maximum time that a group works; tests allow enough for all waiting writes. Default {@link GROUP_MS}. */
  readonly groupMs?: number;
}

/** The store, with its engine's searches by name. */
export interface SqliteStore extends Store {
  readonly search: Searches["search"];
}

/**
 * Opens the SQLite store, creating or migrating the file.
 *
 * @throws when the folder cannot be written or the file is no database of this release
 */
export function openStore(options: StoreOptions): SqliteStore {
  mkdirSync(options.dataDir, { recursive: true, mode: 0o700 });
  const file = join(options.dataDir, DATABASE_FILE);
  const writing = openConnection(file, "writer", options.hasLargeWrites ? "FILE" : "MEMORY");
  let featureLevel: number;
  try {
    const { raisesLevel = true, onMigration: begins, onMigratedRows: progresses } = options;
    migrate(writing.raw, undefined, { begins, progresses, raisesLevel });
    featureLevel = settleLevel(writing.raw, raisesLevel);
  } catch (error) {
    writing.close();
    throw error;
  }
  // From here on the engine does not wait for locks, which would block this thread.
  writing.raw.pragma("busy_timeout = 0");
  const reading = openConnection(file, "reader");
  const snapshot = new Snapshot(reading.raw);
  reading.beforeQuery = () => snapshot.share();
  const maintenance = new Maintenance(file);
  const checkpoints = new Checkpoints(maintenance, writing.raw);
  const textIndex = new TextIndex(maintenance);
  const measures = new StoreMeasures(async () => ({ data: sizeOf(file), log: sizeOf(`${file}-wal`) }));
  const writer = new Writer(writing, {
    groupMs: GROUP_MS,
    quotaBytes: Number.POSITIVE_INFINITY,
    grouping: true,
    ...options,
    featureLevel,
    measures,
    snapshot,
    checkpoints,
    textIndex,
  });
  const endWatch = watchForeignCommits(writing.raw, () => writer.tellAll());
  const searches = new Searches(file);
  const listTurns = new ListScheduler();

  const operator = options.operatorName ? { ...OPERATOR, id: `operator:${options.operatorName}` } : OPERATOR;

  const touchAll: Store["touchAll"] = (notes) =>
    writer.enqueue(async (db) => {
      for (const { table, id, values } of typeof notes === "function" ? await notes(db) : notes) {
        const allowed: readonly string[] = BOOKKEEPING_COLUMNS[table];
        const stray = Object.keys(values).find((column) => !allowed.includes(column));
        if (stray !== undefined)
          throw new Error(`${table}.${stray} is no bookkeeping: change it through write`);
        await db.updateTable(table).set(values).where("id", "=", id).execute();
      }
    });

  return {
    reader: reading.db,
    longReader: reading.db,
    search: (...args) => searches.search(...args),
    projectSearch: { find: (scope, page, signal) => searches.search("projects", scope, page, signal) },
    searcher: (scope) => searching(searches, scope),
    lister: (scope) => {
      const owner = { organizationId: scope.organizationId, callerId: scope.subject?.id ?? "" };
      const attempt: ListReading["attempt"] = (...query) =>
        listTurns.run(owner, () => reading.attempt(...query));
      return listing(searches, { db: reading.db, attempt }, scope);
    },
    write: <T>(
      actor: Actor,
      operation: string,
      fn: (tx: WriteTransaction) => Promise<T>,
      options: WriteOptions = {},
    ) => writer.write(actor === OPERATOR ? operator : actor, operation, fn, options),
    note: (table, id, values) => touchAll([{ table, id, values: values as BookkeepingUpdate["values"] }]),
    touchAll: touchAll,
    problem: () => writer.problem,
    probe: () => writer.probe(),
    measures,
    leads: () => true,
    raiseFeatureLevel: async () => undefined,
    onCommit: (listener) => writer.onCommit(listener),
    onChange: (id, listener) => writer.onChange(id, listener),
    async close() {
      endWatch();
      // Closed at once, so that both reject new work.
      await Promise.all([writer.close(), searches.close()]);
      await checkpoints.close();
      await maintenance.close();
      reading.close();
      try {
        writing.raw.pragma("wal_checkpoint(TRUNCATE)");
      } catch (error) {
        if (isSyncFailure(error)) {
          // Pages copied into the file before may be lost. Closing would copy only the rest and then delete the log,
          // which alone has all of them: it stays for the next start, which copies it again.
          exitOnSyncFailure((error as Error).message);
          return new Promise(() => {});
        }
        // On a full disk the log stays next to the file, and the next start continues from it: nothing is lost.
        if (storageProblem(error) === undefined) throw error;
      }
      writing.close();
    },
  };
}

/** Interval between checks for commits of other processes, such as those of the command line. */
const POLL_INTERVAL_MS = 1_000;

/**
 * Calls `tell` within a second after another connection has committed, such as one of another
 * process. One query of the engine serves any number of listeners.
 * @param raw the connection that writes: its own commits are not reported
 * @returns the function that stops it
 */
function watchForeignCommits(raw: Database.Database, tell: () => void): () => void {
  const version = raw.prepare<[], number>("pragma data_version").pluck();
  let seen = version.get();
  const timer = setInterval(() => {
    const now = version.get();
    if (now === seen) return;
    seen = now;
    tell();
  }, POLL_INTERVAL_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/**
 * Returns the feature level of a file. A server raises it at its start, since no other server uses the file.
 * @param raises false for a command next to a server, which may be of the previous release
 * @throws NewerData
 */
function settleLevel(raw: Database.Database, raises: boolean): number {
  const level = readLevel(raw);
  const problem = levelProblem(level);
  if (problem !== undefined) throw new NewerData(problem);
  if (!raises || level === FEATURE_LEVEL) return level;
  raw.prepare("update installation set feature_level = ?").run(FEATURE_LEVEL);
  return FEATURE_LEVEL;
}

/** Returns the size of a file in bytes; 0 when there is none. */
function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
