import { type Kysely, sql } from "kysely";
import pg from "pg";
import { SearchTooLong } from "../../domain/error.ts";
import { StoreMeasures } from "../../domain/measures.ts";
import { Listeners } from "../listeners.ts";
import type { AuditSeal } from "../record/record.ts";
import type { Schema } from "../schema.ts";
import {
  type Actor,
  BOOKKEEPING_COLUMNS,
  type BookkeepingUpdate,
  OPERATOR,
  type Store,
  StoreUnavailable,
  type WriteOptions,
  type WriteTransaction,
} from "../store.ts";
import {
  applySessionSettings,
  builderOver,
  type DatabaseAddress,
  openPipelines,
  openPool,
  plainConfig,
  waitForEnd,
} from "./connection.ts";
import { LevelRaiser } from "./feature-level.ts";
import { type Presence, PresenceRefused } from "./locks.ts";
import { type MigrateOptions, migrate } from "./migrate.ts";
import { readFrom } from "./pipelines.ts";
import { requireUsable } from "./requirements.ts";
import { findProjects } from "./search/project-search.ts";
import { Session } from "./session.ts";
import { storageProblem } from "./storage-problem.ts";
import { GROUP_MS, Writer } from "./writer.ts";

export { PresenceRefused, storageProblem };

export interface PostgresStoreOptions extends DatabaseAddress {
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
  /** Called for each migration that begins on data of an earlier release; it may take a minute. */
  readonly onMigration?: MigrateOptions["begins"];
  /** Called every few seconds with how many rows of a table a migration has rewritten. */
  readonly onMigratedRows?: MigrateOptions["progresses"];
  /** Default "alongside": next to the servers. */
  readonly presence?: Presence;
  /** Connections for reads, and as many for writes. Default {@link CONNECTIONS}. */
  readonly connections?: number;
  /** Returns when the caller of the current operation stops waiting, by performance.now(). Default never. */
  readonly deadline?: () => number | undefined;
  /** Maximum time for which a group of writes works; tests give it enough for all. */
  readonly groupMs?: number;
}

/** Connections of one server for reads, and as many for writes. With one more for its session, a server needs 17. */
const CONNECTIONS = 8;

/** Time in milliseconds that writes in progress, and then the connections, may take to end when the store closes. */
const WRITES_END_MS = 5_000;
const CONNECTIONS_END_MS = 1_000;

/**
 * Opens the store in PostgreSQL, creating or migrating its tables.
 * @throws PresenceRefused; NewerData; Error with a sentence for the operator when the database cannot be used
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const { connections = CONNECTIONS, presence } = options;
  const client = new pg.Client(plainConfig(options));
  // A connection that breaks between two queries fails the next one; an unhandled event would end the process.
  client.on("error", () => {});
  await client.connect();
  try {
    await requireUsable(client, presence === "server" ? 2 * connections + 1 : 1);
    await applySessionSettings(client);
    const { onMigration: begins, onMigratedRows: progresses } = options;
    await migrate(client, undefined, { begins, progresses });
  } finally {
    await client.end();
  }
  const { store, session } = buildStore(options);
  try {
    await session.open();
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Returns the store of a database whose tables match this release. Nothing connects before the first use. */
export function connectStore(options: PostgresStoreOptions): Store {
  const { store, session } = buildStore(options);
  session.begin();
  return store;
}

function buildStore(options: PostgresStoreOptions): { readonly store: Store; readonly session: Session } {
  const { connections = CONNECTIONS, presence = "alongside", deadline = () => undefined } = options;
  const listeners = new Listeners();
  const isServer = presence === "server";
  // Half of the read connections are for lists and other queries that may take long.
  const listing = openPool(options, "read", Math.max(1, Math.floor(connections / 2)), isServer);
  const reading = openPipelines(options, Math.ceil(connections / 2), isServer);
  const writing = openPool(options, "write", connections, isServer);
  const session = new Session({ ...options, presence, listeners });
  const tooSlow = () => new StoreUnavailable("the database is too slow");
  const reader = builderOver(readFrom(reading, tooSlow, deadline));
  const longReader = builderOver(readFrom(listing, tooSlow, deadline));
  const lister = builderOver(readFrom(listing, (limitMs) => new SearchTooLong(limitMs), deadline));
  const measures = new StoreMeasures(async () => ({ data: await databaseSize(lister) }));
  const writer = new Writer({
    groupMs: GROUP_MS,
    quotaBytes: Number.POSITIVE_INFINITY,
    ...options,
    deadline,
    pool: writing,
    measures,
    reader,
    listeners,
    onCommitted: (topics) => session.send(topics),
    leader: () => session.leader,
  });
  const levels = new LevelRaiser(writing, () => session.leader !== undefined);
  const operator = options.operatorName ? { ...OPERATOR, id: `operator:${options.operatorName}` } : OPERATOR;

  const touchAll: Store["touchAll"] = (notes, options = {}) =>
    writer.touch(async (db) => {
      for (const { table, id, values } of typeof notes === "function" ? await notes(db) : notes) {
        const allowed: readonly string[] = BOOKKEEPING_COLUMNS[table];
        const stray = Object.keys(values).find((column) => !allowed.includes(column));
        if (stray !== undefined)
          throw new Error(`${table}.${stray} is no bookkeeping: change it through write`);
        await db.updateTable(table).set(values).where("id", "=", id).execute();
      }
    }, options);

  const store: Store = {
    reader,
    longReader,
    projectSearch: { find: (scope, page) => findProjects(lister, scope, page) },
    searcher: () => lister,
    lister: () => lister,
    write: <T>(
      actor: Actor,
      operation: string,
      fn: (tx: WriteTransaction) => Promise<T>,
      options: WriteOptions = {},
    ) => writer.write(actor === OPERATOR ? operator : actor, operation, fn, options),
    note: (table, id, values) => touchAll([{ table, id, values: values as BookkeepingUpdate["values"] }]),
    touchAll,
    problem: () => writer.problem ?? session.problem,
    probe: () => writer.probe(),
    measures,
    others: session,
    leads: () => session.leader !== undefined,
    raiseFeatureLevel: () => levels.raise(),
    onCommit: (listener) => listeners.add(listener),
    onChange: (id, listener) => listeners.addOf(id, listener),
    async close() {
      await waitForEnd(writer.close(), WRITES_END_MS);
      await session.close();
      const ends = Promise.all([reading.end(), listing.end(), writing.end()]);
      await waitForEnd(ends, CONNECTIONS_END_MS);
    },
  };
  return { store, session };
}

/** Returns the size of the database in bytes. */
async function databaseSize(db: Kysely<Schema>): Promise<number> {
  const { rows } = await sql<{
    size: string;
  }>`select pg_database_size(current_database())::text as size`.execute(db);
  return Number(rows[0]?.size);
}
