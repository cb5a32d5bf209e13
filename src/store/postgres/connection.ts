import {
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  type OperationNode,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type PrimitiveValueListNode,
  type QueryResult,
  type RawNode,
} from "kysely";
import pg from "pg";
import { postgresForm } from "../expressions.ts";
import type { HeldLocks } from "../held-locks.ts";
import { runDirectly } from "../prepared.ts";
import type { Schema } from "../schema.ts";
import { TYPES } from "./columns.ts";
import { OneAtATimeClient } from "./one-at-a-time.ts";
import { Pipelines } from "./pipelines.ts";
import { requireLockedRows } from "./row-guard.ts";
import { type ConnectionRole, READ_LIMIT_MS, settingsOf } from "./session-settings.ts";
import { renameStatements, statementName } from "./statement-names.ts";
import { isStalePlan } from "./storage-problem.ts";
import { toStored } from "./text.ts";
import { WriteClient } from "./write-client.ts";

/**
 * Time in milliseconds after which a server treats an unanswered query, and its connection, as lost: a cut network
 * reports nothing. The engine's own limits are shorter. Commands may wait longer.
 */
const ANSWER_LIMIT_MS: Readonly<Record<ConnectionRole, number>> = {
  read: READ_LIMIT_MS + 2_000,
  write: 30_000,
  session: 4_000,
};

/** The address of a database and how to reach it. */
export interface DatabaseAddress {
  /** `postgres://user@host:port/database?sslmode=…` */
  readonly url: string;
  /** Default: that of PGPASSWORD. */
  readonly password?: string | undefined;
}

/** Returns the URL including the password: the driver prefers what it reads from a URL to any other option. */
function withPassword({ url, password }: DatabaseAddress): string {
  if (password === undefined) return url;
  const full = new URL(url);
  full.searchParams.set("password", password);
  return full.href;
}

/** Returns the driver's options for a connection of one role. */
function clientConfig(address: DatabaseAddress, role: ConnectionRole): pg.ClientConfig {
  return {
    connectionString: withPassword(address),
    types: TYPES,
    keepAlive: true,
    keepAliveInitialDelayMillis: 3_000,
    connectionTimeoutMillis: 5_000,
    application_name: `chartroom ${role}`,
    options: Object.entries(settingsOf(role))
      .map(([name, value]) => `-c ${name}=${value.replaceAll(" ", "\\ ")}`)
      .join(" "),
  };
}

/** Returns the driver's options for a session. @param hasAnswerLimit false for long queries, such as migrations */
export const sessionConfig = (address: DatabaseAddress, hasAnswerLimit = false): pg.ClientConfig => ({
  ...clientConfig(address, "session"),
  ...(hasAnswerLimit && { query_timeout: ANSWER_LIMIT_MS.session }),
});

/**
 * Returns the driver's options for a connection that any release of the engine accepts. Older releases close a
 * connection with settings they do not know, before their version can be read.
 */
export const plainConfig = (address: DatabaseAddress): pg.ClientConfig => ({
  ...sessionConfig(address),
  options: "-c timezone=UTC -c synchronous_commit=on",
});

/** Applies the session settings to a plain connection, so that its locks are released if it vanishes. */
export async function applySessionSettings(client: pg.ClientBase): Promise<void> {
  await client.query("select set_config(key, value, false) from json_each_text($1)", [
    JSON.stringify(settingsOf("session")),
  ]);
}

/** Opens a pool of connections of one role. Nothing connects before the first query. @param isServer false for commands */
export function openPool(
  address: DatabaseAddress,
  role: "read" | "write",
  max: number,
  isServer = false,
): pg.Pool {
  const limits = isServer && { query_timeout: ANSWER_LIMIT_MS[role] };
  const Client = role === "write" ? WriteClient : OneAtATimeClient;
  const pool = new pg.Pool({ ...clientConfig(address, role), ...limits, max, Client });
  // An idle connection that breaks is removed from the pool; the next query opens another.
  pool.on("error", () => {});
  // When a connection breaks in use, its query fails too; an unhandled event would end the process.
  pool.on("connect", (client) => void client.on("error", () => {}));
  return pool;
}

/** Waits for an orderly end, at most this long in milliseconds: the database may not answer. */
export async function waitForEnd(ending: Promise<unknown>, limitMs: number): Promise<void> {
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(over.resolve, limitMs);
  await Promise.race([ending, over.promise]).finally(() => clearTimeout(timer));
}

/**
 * Opens connections for short reads, each of which answers its queries in order. Nothing connects before the first
 * query.
 * @param isServer false for commands
 */
export function openPipelines(address: DatabaseAddress, connections: number, isServer = false): Pipelines {
  const limits = isServer && { query_timeout: ANSWER_LIMIT_MS.read };
  return new Pipelines({ ...clientConfig(address, "read"), ...limits }, connections, READ_LIMIT_MS);
}

/** Runs one query; prepared on its connection when it has a name. */
export type RunQuery = (query: pg.QueryConfig) => Promise<Pick<pg.QueryResult, "rows" | "rowCount">>;

/** Sends a change without waiting for its answer. @returns false when the change is to be awaited */
type SendAhead = (query: pg.QueryConfig) => boolean;

/** A statement that changes rows and returns none. */
const CHANGE = /^(insert|update|delete)\b(?!.*\breturning\b)/s;

/**
 * Returns a query builder whose queries are run by `run`, such as on one connection or on any of a pool.
 * @param isInTransaction true if all of them run in one transaction, which can stream rows
 */
export function builderOver(
  run: RunQuery,
  isInTransaction = false,
  sendAhead: SendAhead = () => false,
): Kysely<Schema> {
  let streams = 0;
  const named = (text: string, values: readonly unknown[]): pg.QueryConfig => {
    const name = statementName(text);
    return { text, values: values.map(toStored), ...(name && { name }) };
  };
  const runNamed = (text: string, values: readonly unknown[]) => {
    const query = named(text, values);
    return run(query).catch((error) => {
      if (isStalePlan(error)) renameStatements(query.name);
      throw error;
    });
  };
  const connection: DatabaseConnection = {
    async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
      const { rows, rowCount } = await runNamed(sql, parameters);
      return { rows: rows as R[], numAffectedRows: BigInt(rowCount ?? 0) };
    },
    async *streamQuery<R>({ sql, parameters }: CompiledQuery, rowsAtOnce: number) {
      if (!isInTransaction) throw new Error("rows are streamed only in a transaction");
      streams += 1;
      const cursor = `stream_${streams}`;
      await run({ text: `declare ${cursor} cursor for ${sql}`, values: parameters.map(toStored) });
      for (;;) {
        const { rows } = await run({ text: `fetch ${rowsAtOnce} from ${cursor}` });
        if (rows.length === 0) break;
        yield { rows: rows as R[] };
      }
      await run({ text: `close ${cursor}` });
    },
  };
  const refuse = async () => {
    throw new Error("transactions belong to the writer");
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
  const db = new Kysely<Schema>({
    dialect: {
      createDriver: () => driver,
      createAdapter: () => new PostgresAdapter(),
      createQueryCompiler: () => new EngineQueryCompiler(),
      createIntrospector: (db) => new PostgresIntrospector(db),
    },
  });
  runDirectly(db, (text) => {
    const isChange = CHANGE.test(text);
    return async (values) => {
      if (isChange && sendAhead(named(text, values))) return [];
      return (await runNamed(text, values)).rows;
    };
  });
  return db;
}

const builders = new WeakMap<pg.ClientBase, Kysely<Schema>>();
const guards = new WeakMap<pg.ClientBase, HeldLocks>();

/**
 * Returns the query builder of one write connection, the same at each call, so that its queries stay compiled and
 * prepared. Prepared changes are sent without waiting; the statements after a failed one get its error.
 */
export function builderOfClient(client: WriteClient): Kysely<Schema> {
  const known = builders.get(client);
  if (known) return known;
  const requireLocked = ({ text, values }: pg.QueryConfig) => {
    const held = guards.get(client);
    if (held) requireLockedRows(held, text, values ?? []);
  };
  const run: RunQuery = async (query) => {
    requireLocked(query);
    return client.query(query);
  };
  const sendAhead: SendAhead = (query) => {
    if (!client.canSendAhead) return false;
    requireLocked(query);
    client.sendAhead(query, (error) => {
      if (isStalePlan(error)) renameStatements(query.name);
    });
    return true;
  };
  const made = builderOver(run, false, sendAhead);
  builders.set(client, made);
  return made;
}

/** Lets the queries of a connection change only rows that are locked, until this is called without locks. */
export function guardRows(client: pg.ClientBase, held: HeldLocks | undefined): void {
  if (held) guards.set(client, held);
  else guards.delete(client);
}

/**
 * Compiles queries for PostgreSQL: where an expression differs between the engines, its form for this one, and an empty
 * list of values as one that SQL knows.
 */
class EngineQueryCompiler extends PostgresQueryCompiler {
  protected override visitRaw(node: RawNode): void {
    const form: OperationNode | undefined = postgresForm(node);
    if (form) this.visitNode(form);
    else super.visitRaw(node);
  }

  protected override visitPrimitiveValueList(node: PrimitiveValueListNode): void {
    if (node.values.length === 0) this.append("(select null where false)");
    else super.visitPrimitiveValueList(node);
  }
}
