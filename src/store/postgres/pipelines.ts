import pg from "pg";
import { deadlinePassed } from "../../domain/error.ts";
import { StoreUnavailable } from "../store.ts";
import { Batch, type BatchAnswer } from "./batch.ts";
import type { Column } from "./columns.ts";
import type { RunQuery } from "./connection.ts";
import { limitFor, READ_LIMIT_MS } from "./session-settings.ts";
import { renameStatements } from "./statement-names.ts";
import {
  isBroken,
  isDisconnect,
  isEngineFailure,
  isPreparedOtherwise,
  isStalePlan,
  isTimeout,
  storageProblem,
} from "./storage-problem.ts";

/**
 * Connections for short reads. The queries of one turn of the event loop are sent together on one connection, without
 * waiting for each other's answers, and are answered together. This takes half of the processor time of a pool that
 * gives each query its own connection. A slow query delays those sent with it and after it, so lists and other queries
 * that may take long use a pool.
 */
export class Pipelines {
  readonly #pipelines: readonly Pipeline[];
  /** The connection of the current turn. */
  #present: Pipeline | undefined;

  /** @param limitMs statement timeout in the settings of each connection, in milliseconds */
  constructor(config: pg.ClientConfig, connections: number, limitMs: number) {
    this.#pipelines = Array.from({ length: connections }, () => new Pipeline(config, limitMs));
  }

  /**
   * Runs a query; prepared on its connection when it has a name. If its connection breaks, it is retried once on
   * another.
   * @param limitMs time after which the engine ends it
   * @throws the engine's error, or the driver's
   */
  query(query: pg.QueryConfig, limitMs: number): Promise<BatchAnswer> {
    this.#present ??= this.#begin();
    return this.#present.query(query, limitMs);
  }

  /** Waits for the queries in progress and ends the connections. */
  async end(): Promise<void> {
    await Promise.all(this.#pipelines.map((each) => each.end()));
  }

  /** Returns the connection with the fewest queries in progress, for all queries of this turn. */
  #begin(): Pipeline {
    setImmediate(() => {
      this.#present = undefined;
    });
    return this.#pipelines.reduce((least, each) => (each.underWay < least.underWay ? each : least));
  }
}

/** The queries of a turn that have the same limit. */
interface Piece {
  readonly client: pg.Client;
  readonly batch: Batch;
}

/** One connection, which is reopened when it breaks. */
class Pipeline {
  readonly #config: pg.ClientConfig;
  #client: pg.Client | undefined;
  #opening: Promise<pg.Client> | undefined;
  #isEnded = false;
  readonly #usualLimitMs: number;
  /** The limit of the query that was written last; the next query runs after it. */
  readonly #limits = new WeakMap<pg.Client, number>();
  readonly #known = new WeakMap<pg.Client, Map<string, readonly Column[]>>();
  /** The batches that are sent at the end of this turn. */
  #piece: Piece | undefined;
  underWay = 0;

  constructor(config: pg.ClientConfig, limitMs: number) {
    this.#config = { ...config, pipeline: true };
    this.#usualLimitMs = limitMs;
  }

  async query(query: pg.QueryConfig, limitMs: number): Promise<BatchAnswer> {
    this.underWay += 1;
    try {
      const client = this.#client ?? (await this.#open());
      return await this.#queryOn(client, query, limitMs).catch(async (error) => {
        if (!isDisconnect(error)) throw error;
        this.#lose(client);
        return this.#queryOn(this.#client ?? (await this.#open()), query, limitMs);
      });
    } finally {
      this.underWay -= 1;
    }
  }

  #queryOn(client: pg.Client, query: pg.QueryConfig, limitMs: number): Promise<BatchAnswer> {
    return new Promise((resolve, reject) => {
      // An earlier query that failed ended the batch: this one is sent on its own, so that it runs exactly once.
      const again = () => {
        const piece = this.#begin(client, limitMs);
        piece.batch.add(query, resolve, reject);
        this.#send();
      };
      this.#pieceOf(client, limitMs).batch.add(query, resolve, reject, again);
    });
  }

  /** Returns this turn's batch for queries with a limit. */
  #pieceOf(client: pg.Client, limitMs: number): Piece {
    const isSame = this.#piece?.client === client && this.#limitOf(client) === limitMs;
    if (this.#piece && isSame) return this.#piece;
    if (!this.#piece) setImmediate(() => this.#send());
    return this.#begin(client, limitMs);
  }

  /** Starts another batch, after the one that was started before. */
  #begin(client: pg.Client, limitMs: number): Piece {
    this.#send();
    if (this.#limitOf(client) !== limitMs) {
      this.#limits.set(client, limitMs);
      // Not awaited: it runs before the queries. If it fails, the connection has broken, and the queries fail too.
      client.query(`set statement_timeout = ${limitMs}`).catch(() => {});
    }
    let known = this.#known.get(client);
    if (!known) {
      known = new Map();
      this.#known.set(client, known);
    }
    this.#piece = { client, batch: new Batch(known) };
    return this.#piece;
  }

  #limitOf = (client: pg.Client): number => this.#limits.get(client) ?? this.#usualLimitMs;

  #send(): void {
    const piece = this.#piece;
    this.#piece = undefined;
    piece?.client.query(piece.batch);
  }

  async end(): Promise<void> {
    this.#isEnded = true;
    await this.#opening?.catch(() => {});
    this.#send();
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
    const lost = () => this.#lose(client);
    // Its queries fail as well; an unhandled event would end the process.
    client.on("error", lost);
    client.on("end", lost);
    await client.connect();
    this.#client = client;
    return client;
  }

  /** Stops using a connection that has broken, which its queries may learn before its socket does. */
  #lose(client: pg.Client): void {
    if (this.#client === client) this.#client = undefined;
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
        if (!isStalePlan(error) && !isPreparedOtherwise(error)) throw error;
        if (isStalePlan(error)) renameStatements(query.name);
        return readWithin(pool, { ...query, name: undefined }, limitMs);
      });
    } catch (cause) {
      if (isTimeout(cause)) throw limitMs < READ_LIMIT_MS ? deadlinePassed() : tooLong(READ_LIMIT_MS);
      if (!isEngineFailure(cause)) throw cause;
      throw new StoreUnavailable("the database did not answer", { problem: storageProblem(cause), cause });
    }
  };
}

/** Limits in milliseconds of the read connections where they differ from {@link READ_LIMIT_MS}. */
const readLimits = new WeakMap<pg.PoolClient, number>();

/** Connections that have been used before: when one is found broken, the others may be broken too. */
const used = new WeakSet<pg.PoolClient>();

async function readWithin(
  pool: pg.Pool | Pipelines,
  query: pg.QueryConfig,
  limitMs: number,
): ReturnType<RunQuery> {
  if (pool instanceof Pipelines) return pool.query(query, limitMs);
  const client = await pool.connect();
  const isUsed = used.has(client);
  used.add(client);
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
    // The query is retried on each connection that may have broken along with this one, and finally on a new one.
    if (isUsed && isDisconnect(error)) return readWithin(pool, query, limitMs);
    throw error;
  }
}
