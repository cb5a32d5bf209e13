import { performance } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import type Database from "better-sqlite3";
import { loopTurn } from "./loop-turn.ts";

/**
 * Time that a write works before other events get a turn of the event loop: as long as a group, so
 * that no ordinary write pauses.
 */
const PAUSE_AFTER_MS = 8;

/**
 * Time without a query after which an unsettled write is considered stuck: it holds the one
 * transaction. Queries settle before any timer fires, however slow the disk is.
 */
const STUCK_MS = 2_000;

/**
 * Cache of a paused write, in KiB, which limits the pages left for its commit: the commit of ten
 * images took 75 ms with the usual 16 MB, and 45 ms with this, 30 ms of which were the disk's. With
 * 1 MB it took 65 ms, as pages that each image changes were written once for each.
 */
const PAUSED_CACHE_KIB = 6_000;

/**
 * The turns of the event loop that the writes of a group take. One that changes many rows pauses
 * between two queries, with its transaction open: reads continue meanwhile and see nothing of it,
 * and other writes wait for its end.
 */
export class WriteTurns {
  readonly #raw: Database.Database;
  readonly #usualCache: unknown;
  #hasSmallCache = false;
  #stuck: NodeJS.Timeout | undefined;
  #began = 0;
  #turn = 0;
  #hasWaited = false;
  #pause: Promise<void> | undefined;

  /**
   * Creates the turns of a connection.
   * @param raw the connection that writes
   */
  constructor(raw: Database.Database) {
    this.#raw = raw;
    this.#usualCache = raw.pragma("cache_size", { simple: true });
  }

  /** Starts a group; {@link close} ends it. */
  open(): void {
    // A pause ends by itself: a machine that stalls during one lets this much time pass before the loop completes its
    // turn.
    this.#stuck = setTimeout(() => (this.#pause ? this.#stuck?.refresh() : endStuck()), STUCK_MS);
    this.begin();
  }

  close(): void {
    clearTimeout(this.#stuck);
    this.#stuck = undefined;
    if (this.#hasSmallCache) this.#raw.pragma(`cache_size = ${this.#usualCache}`);
    this.#hasSmallCache = false;
  }

  /** Starts a write with its full time. */
  begin(): void {
    this.#hasWaited = false;
    this.#resume();
  }

  /**
   * Gives other events a turn when the write has worked for long enough; returns undefined before
   * that.
   */
  readonly pauseWhenDue = (): Promise<void> | undefined => {
    if (this.#stuck === undefined) return undefined;
    if (this.#pause) return this.#pause;
    if (performance.now() - this.#began < PAUSE_AFTER_MS) return undefined;
    this.#hasWaited ||= loopTurn() !== this.#turn;
    this.#stuck.refresh();
    if (!this.#hasSmallCache) this.#raw.pragma(`cache_size = -${PAUSED_CACHE_KIB}`);
    this.#hasSmallCache = true;
    this.#pause = nextTurn().then(() => {
      this.#pause = undefined;
      this.#stuck?.refresh();
      this.#resume();
    });
    return this.#pause;
  };

  /**
   * Rejects a write that waits for anything but its own queries. A timer that is due by the end of
   * the same turn goes unnoticed: it held the commit open no longer than a query.
   * @throws when the write did: the commit of all writes was held open
   */
  requireNoOtherWaits(): void {
    if (!this.#hasWaited && loopTurn() === this.#turn) return;
    throw new Error("a write awaited something other than its own queries");
  }

  #resume(): void {
    this.#began = performance.now();
    this.#turn = loopTurn();
  }
}

export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/**
 * Ends the process by an uncaught error, so that it is restarted: the connection cannot be taken back from a stuck
 * write. Nothing of the group is committed, and a server that can no longer write would be worse.
 */
function endStuck(): never {
  throw new Error(
    `a write has not settled for ${STUCK_MS} ms: it awaits something other than its own queries`,
  );
}

/**
 * Idle time after a commit, as a share of its duration: without it, another process would never get the lock under
 * load.
 */
const REST_SHARE = 0.1;

/** Leaves the lock free for a while after a commit that took long. */
export async function restAfter(commitMs: number): Promise<void> {
  const restMs = Math.floor(commitMs * REST_SHARE);
  if (restMs > 0) await delay(restMs);
}
