import pg from "pg";
import { deadlinePassed } from "../../domain/error.ts";
import { StoreUnavailable } from "../store.ts";
import type { RunQuery } from "./connection.ts";
import { type Answer, KnownStatements, PreparedRead, renameStatements } from "./prepared-read.ts";
import { limitFor, READ_LIMIT_MS } from "./session-settings.ts";
import { isBroken, isEngineFailure, isStalePlan, isTimeout, storageProblem } from "./storage-problem.ts";

/**
 * Connections for short reads. The queries of one turn of the event loop go to one connection in one piece, without
 * waiting for each other's answers; that takes half of the processor time of a pool that gives each query a connection
 * of its own. A query that takes long holds up those behind it, so lists that search have a pool.
 */
export class Pipelines {
  readonly #pipelines: readonly Pipeline[];
  /** The connection of the present turn. */
  #present: Pipeline | undefined;

  /** @param limitMs time after which the engine ends a query by the settings of a connection */
  constructor(config: pg.ClientConfig, connections: number, limitMs: number) {
    this.#pipelines = Array.from({ length: connections }, () => new Pipeline(config, limitMs));
  }

  /**
   * Runs a query; prepared on its connection when it has a name.
   * @param limitMs time after which the engine ends it
   * @throws the engine's error, or the driver's
   */
  query(query: pg.QueryConfig, limitMs: number): Promise<Answer> {
    this.#present ??= this.#begin();
    return this.#present.query(query, limitMs);
  }

  /** Waits for the queries under way and ends the connections. */
  async end(): Promise<void> {
    await Promise.all(this.#pipelines.map((each) => each.end()));
  }

  /** Returns the connection with the fewest queries under way, for all queries of this turn. */
  #begin(): Pipeline {
    const chosen = this.#pipelines.reduce((least, each) => (each.underWay < least.underWay ? each : least));
    const send = chosen.hold();
    setImmediate(() => {
      this.#present = undefined;
      send();
    });
    return chosen;
  }
}

/** One connection, which is made again when it breaks. */
class Pipeline {
  readonly #config: pg.ClientConfig;
  #client: pg.Client | undefined;
  #opening: Promise<pg.Client> | undefined;
  #isEnded = false;
  readonly #usualLimitMs: number;
  /** The limit of the query that was written last: the next one is carried out after it. */
  readonly #limits = new WeakMap<pg.Client, number>();
  readonly #statements = new WeakMap<pg.Client, KnownStatements>();
  underWay = 0;

  constructor(config: pg.ClientConfig, limitMs: number) {
    this.#config = { ...config, pipeline: true };
    this.#usualLimitMs = limitMs;
  }

  async query(query: pg.QueryConfig, limitMs: number): Promise<Answer> {
    this.underWay += 1;
    try {
      const client = this.#client ?? (await this.#open());
      this.#limit(client, limitMs);
      return await this.#read(client, query);
    } finally {
      this.underWay -= 1;
    }
  }

  #read(client: pg.Client, query: pg.QueryConfig): Promise<Answer> {
    const statements = this.#statements.get(client) ?? new KnownStatements(client.connection);
    this.#statements.set(client, statements);
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    client.query(new PreparedRead(query, statements, resolve, reject));
    return promise;
  }

  #limit(client: pg.Client, limitMs: number): void {
    if ((this.#limits.get(client) ?? this.#usualLimitMs) === limitMs) return;
    this.#limits.set(client, limitMs);
    // Not awaited: it goes before the query. Where it fails, the connection has broken, and the query fails too.
    client.query(`set statement_timeout = ${limitMs}`).catch(() => {});
  }

  /** Keeps what is written from being sent. @returns the function that sends it */
  hold(): () => void {
    const stream = this.#client?.connection.stream;
    stream?.cork();
    return () => stream?.uncork();
  }

  async end(): Promise<void> {
    this.#isEnded = true;
    await this.#opening?.catch(() => {});
    await this.#client?.end();
  }

  #open(): Promise<pg.Client> {
    if (this.#isEnded) throw new Error("Connection terminated: the store is closed");
    this.#opening ??= this.#connect().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client(this.#config);
    const lost = () => {
      if (this.#client === client) this.#client = undefined;
    };
    // Its queries fail as well; the event alone would end the process.
    client.on("error", lost);
    client.on("end", lost);
    await client.connect();
    this.#client = client;
    return client;
  }
}

/**
 * Returns the function that runs queries on any connection of those that read.
 *
 * @param tooLong returns the error for a query that took longer than the limit, which is its argument
 * @param deadline returns when the caller ceases to wait, by performance.now()
 * @throws StoreUnavailable when the engine cannot be reached or fails; DomainError DEADLINE_EXCEEDED
 */
export function readFrom(
  pool: pg.Pool | Pipelines,
  tooLong: (limitMs: number) => Error,
  deadline: () => number | undefined,
): RunQuery {
  return async (query) => {
    const leftMs = (deadline() ?? Number.POSITIVE_INFINITY) - performance.now();
    const limitMs = limitFor(leftMs, READ_LIMIT_MS);
    try {
      return await readWithin(pool, query, limitMs).catch((error) => {
        if (!isStalePlan(error)) throw error;
        renameStatements(query.name);
        return readWithin(pool, { ...query, name: undefined }, limitMs);
      });
    } catch (cause) {
      if (isTimeout(cause)) throw limitMs < READ_LIMIT_MS ? deadlinePassed() : tooLong(READ_LIMIT_MS);
      if (!isEngineFailure(cause)) throw cause;
      throw new StoreUnavailable("the database did not answer", { problem: storageProblem(cause), cause });
    }
  };
}

/** Limits of the connections that read, in milliseconds, where they are not {@link READ_LIMIT_MS}. */
const readLimits = new WeakMap<pg.PoolClient, number>();

async function readWithin(
  pool: pg.Pool | Pipelines,
  query: pg.QueryConfig,
  limitMs: number,
): ReturnType<RunQuery> {
  if (pool instanceof Pipelines) return pool.query(query, limitMs);
  const client = await pool.connect();
  try {
    if ((readLimits.get(client) ?? READ_LIMIT_MS) !== limitMs) {
      await client.query(`set statement_timeout = ${limitMs}`);
      readLimits.set(client, limitMs);
    }
    const result = await client.query(query);
    client.release();
    return result;
  } catch (error) {
    client.release(isBroken(error));
    throw error;
  }
}
