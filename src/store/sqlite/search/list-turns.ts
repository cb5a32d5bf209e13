import { FairQueue, type SearchOwner } from "./search-turns.ts";

/**
 * Maximum time that the queries of lists block the main thread in one turn of the event loop, plus
 * one query.
 */
const TURN_MS = 8;

/**
 * A scheduler for the queries of lists on the main thread. A caller may send a hundred of them at
 * once, and without it all would run before the event loop handles requests that others sent
 * meanwhile. In each turn of the loop there is time for some of them, and those that wait take
 * turns by organization and caller.
 */
export class ListScheduler {
  readonly #now: () => number;
  readonly #waiting = new FairQueue<() => void>({
    each: Number.POSITIVE_INFINITY,
    all: Number.POSITIVE_INFINITY,
  });
  /** Remaining time of the turn; undefined when the next query begins one. */
  #leftMs: number | undefined;

  /**
   * Creates a scheduler.
   * @param now in milliseconds, for tests
   */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Runs a query: at once while this turn of the event loop has time left and no other query waits.
   */
  run<R>(owner: SearchOwner, query: () => R): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#waiting.add(owner, () => {
        try {
          resolve(query());
        } catch (error) {
          reject(error);
        }
      });
      this.#go();
    });
  }

  #go(): void {
    if (this.#leftMs === undefined) {
      this.#leftMs = TURN_MS;
      setImmediate(() => {
        this.#leftMs = undefined;
        if (this.#waiting.size > 0) this.#go();
      });
    }
    while (this.#leftMs > 0) {
      const query = this.#waiting.next();
      if (!query) return;
      const began = this.#now();
      query();
      this.#leftMs -= this.#now() - began;
    }
  }
}
