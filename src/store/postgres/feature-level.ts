import type pg from "pg";
import { FEATURE_LEVEL, levelProblem, NewerData } from "../feature-level.ts";
import { StoreUnavailable } from "../store.ts";
import { excludeLevel, holdLevel, lockForWrite } from "./locks.ts";
import { isEngineFailure, isTimeout, storageProblem } from "./storage-problem.ts";

/**
 * Number of consecutive checks, one a second, that must find no server of an older level before the level is raised.
 * After an outage of the database, a server tries to reconnect at least every 5 s.
 */
const SETTLED_LOOKS = 10;

/**
 * Time in milliseconds that raising the level waits for earlier writes: later writes of all organizations queue behind
 * it. The next look tries again and waits longer by as much, up to MAX_RAISE_WAIT_MS.
 */
const RAISE_WAIT_MS = 200;
const MAX_RAISE_WAIT_MS = 1_000;

/** Returns the feature level of the data. */
export async function readLevel(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ level: number }>("select current_feature_level() as level");
  // Connections outside the pools return whole numbers as text.
  return Number(rows[0]?.level);
}

/**
 * Holds the level of this release for the session, as one of the servers, so that nobody raises the level past it.
 * @throws NewerData when that has happened
 */
export async function joinLevel(client: pg.ClientBase): Promise<void> {
  await holdLevel(client, FEATURE_LEVEL);
  await requireLevel(client);
}

/** @throws NewerData when this release must not use the data */
export async function requireLevel(client: pg.ClientBase): Promise<void> {
  const problem = levelProblem(await readLevel(client));
  if (problem !== undefined) throw new NewerData(problem);
}

/**
 * Raises the feature level in a transaction that excludes older servers until it ends.
 * @returns false when an older server runs
 */
export async function raiseLevelTo(client: pg.ClientBase, level: number): Promise<boolean> {
  for (let older = await readLevel(client); older < level; older++)
    if (!(await excludeLevel(client, older))) return false;
  await client.query("update installation set feature_level = $1 where feature_level < $1", [level]);
  return true;
}

/** Compares this release with the data at each write, and keeps the reason why it can no longer write. */
export class LevelCheck {
  #problem: string | undefined;

  /** Returns why this release must not write, in words for the operator; undefined while it may. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** @throws StoreUnavailable when this release must not write data of the level */
  require(level: number): number {
    this.#problem = levelProblem(level);
    if (this.#problem === undefined) return level;
    throw new StoreUnavailable("this release is older than the data", { problem: this.#problem });
  }
}

/** Raises the feature level step by step, while this process is the leader. */
export class LevelRaiser {
  readonly #pool: pg.Pool;
  readonly #leads: () => boolean;
  #known = 0;
  #settledLooks = 0;

  constructor(pool: pg.Pool, leads: () => boolean) {
    this.#pool = pool;
    this.#leads = leads;
  }

  /** See Store.raiseFeatureLevel. */
  async raise(): Promise<number | undefined> {
    if (this.#known >= FEATURE_LEVEL) return undefined;
    if (!this.#leads()) {
      this.#settledLooks = 0;
      return undefined;
    }
    let client: pg.PoolClient | undefined;
    try {
      client = await this.#pool.connect();
      await client.query("begin");
      const raised = await this.#raiseIn(client);
      await client.query(raised === undefined ? "rollback" : "commit");
      client.release();
      return raised;
    } catch (cause) {
      client?.release(true);
      if (!isEngineFailure(cause)) throw cause;
      throw new StoreUnavailable("the database did not answer", { problem: storageProblem(cause), cause });
    }
  }

  async #raiseIn(client: pg.PoolClient): Promise<number | undefined> {
    this.#known = await readLevel(client);
    if (this.#known >= FEATURE_LEVEL) return undefined;
    const isThere = !(await excludeLevel(client, this.#known));
    this.#settledLooks = isThere ? 0 : this.#settledLooks + 1;
    if (this.#settledLooks < SETTLED_LOOKS) return undefined;
    // Waits for writes that began at the lower level: the session of a suspended server may have ended before them.
    const waitMs = Math.min((this.#settledLooks - SETTLED_LOOKS + 1) * RAISE_WAIT_MS, MAX_RAISE_WAIT_MS);
    try {
      await lockForWrite(client, "installation", waitMs);
    } catch (error) {
      if (isTimeout(error)) return undefined;
      throw error;
    }
    const level = this.#known + 1;
    await raiseLevelTo(client, level);
    this.#settledLooks = 0;
    return level;
  }
}
