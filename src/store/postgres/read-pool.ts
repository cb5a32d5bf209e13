import type pg from "pg";
import { deadlinePassed } from "../../domain/error.ts";
import { StoreUnavailable } from "../store.ts";
import { type RunQuery, renameStatements } from "./connection.ts";
import { Pipelines } from "./pipelines.ts";
import { limitFor, READ_LIMIT_MS } from "./session-settings.ts";
import { isBroken, isEngineFailure, isStalePlan, isTimeout, storageProblem } from "./storage-problem.ts";

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
