import { type Owner, Turns } from "./search-turns.ts";

/** How long the queries of lists hold the main thread in one turn of the event loop, one query more at most. */
const TURN_MS = 8;

/**
 * Queries of lists on the main thread. A caller may send a hundred of them at
 * once, and all would be carried out before the event loop looks at what others
 * sent meanwhile: in each of its turns there is time for some, and who waits
 * takes turns by organization and caller.
 */
export class ListTurns {
  readonly #now: () => number;
  readonly #waiting = new Turns<() => void>({
    each: Number.POSITIVE_INFINITY,
    all: Number.POSITIVE_INFINITY,
  });
  /** What of the turn is left; undefined when the next query begins one. */
  #leftMs: number | undefined;

  /** @param now in milliseconds, for tests */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Runs a query: at once while this turn of the event loop has time left and nobody waits. */
  run<R>(owner: Owner, query: () => R): Promise<R> {
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
