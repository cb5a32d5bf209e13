import { performance } from "node:perf_hooks";
import type Database from "better-sqlite3";

/**
 * How long a write works before whatever else came in has a turn of the event
 * loop: as long as a group, so that no ordinary write pauses.
 */
const PAUSE_AFTER_MS = 8;

/**
 * A write that has not settled after this long without a query never will, and
 * it holds the one transaction. Queries settle before any timer fires, however
 * slow the disk is.
 */
const STUCK_MS = 2_000;

/**
 * What a write that pauses may leave to be written when it is committed, in KiB:
 * the commit of ten images took 75 ms with the 16 MB that are usual, and 45 with
 * this, of which the disk took 30. With 1 MB it took 65, as pages that each image
 * changes were written once for each.
 */
const PAUSED_CACHE_KIB = 6_000;

/**
 * The turns of the event loop that the writes of a group take. One that changes
 * many rows pauses between two queries, with its transaction open: reads go on
 * meanwhile and see nothing of it, and other writes wait for its end.
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

  /** @param raw the connection that writes */
  constructor(raw: Database.Database) {
    this.#raw = raw;
    this.#usualCache = raw.pragma("cache_size", { simple: true });
  }

  /** To be called when a group begins; {@link close} ends it. */
  open(): void {
    this.#stuck = setTimeout(endStuck, STUCK_MS);
    this.begin();
  }

  close(): void {
    clearTimeout(this.#stuck);
    this.#stuck = undefined;
    if (this.#hasSmallCache) this.#raw.pragma(`cache_size = ${this.#usualCache}`);
    this.#hasSmallCache = false;
  }

  /** To be called when a write begins, which has its time for itself. */
  begin(): void {
    this.#hasWaited = false;
    this.#resume();
  }

  /** Lets others have their turn once the write has worked for long enough; undefined before that. */
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

  /** @throws when the write has waited for anything but its own queries: everybody's commit was held open */
  refuseOtherWaits(): void {
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
 * Nothing can take the connection back from a write that goes on. Thrown where
 * nobody catches it, so that a restart follows: nothing of the group is
 * committed, and a server that answers no write any more would be worse.
 */
function endStuck(): never {
  throw new Error(
    `a write has not settled for ${STUCK_MS} ms: it awaits something other than its own queries`,
  );
}

/** Number of the event loop's present turn; the queries of a write settle within one, pauses aside. */
function loopTurn(): number {
  return performance.nodeTiming.uvMetricsInfo.loopCount;
}
