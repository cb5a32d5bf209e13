/** The purpose of a transaction. Bookkeeping locks no organization, and runs one transaction at a time. */
export type Purpose = "request" | "job" | "bookkeeping";

/** A transaction that waits for a connection. */
interface Waiting {
  readonly purpose: () => Purpose;
  readonly begin: (end: () => void) => void;
}

/**
 * Schedules the transactions of one process. At most one runs at a time for each key, so that only one of them waits
 * in the engine for an organization, and no more run than there are connections. One connection is reserved for jobs
 * and one for bookkeeping, so that both continue while requests wait for locks. Transactions that were blocked by the
 * locks of another process get at most half of the connections for requests: the others are for locks that are free.
 */
export class Turns {
  readonly #last = new Map<string, Promise<void>>();
  readonly #waiting: Waiting[] = [];
  #underWay = 0;
  #free: number;
  #freeForJobs: number;
  readonly #waitingContended: (() => void)[] = [];
  #freeForContended: number;

  /** @param connections number of all write connections */
  constructor(connections: number) {
    this.#free = Math.max(1, connections - 2);
    this.#freeForJobs = connections > 2 ? 1 : 0;
    this.#freeForContended = Math.max(1, Math.floor(this.#free / 2));
  }

  /** Number of transactions in progress, without that of bookkeeping. */
  get underWay(): number {
    return this.#underWay;
  }

  /**
   * Waits until no transaction with one of the keys is in progress, in the order of the calls, and then for a
   * connection.
   * @param purpose purpose of the waiting transaction; it may change until its turn comes
   * @param isContended whether the previous transaction failed to get the same locks
   * @returns the function that ends the turn
   */
  async take(keys: readonly string[], purpose: () => Purpose, isContended: boolean): Promise<() => void> {
    // Taken before the keys, so that a transaction that waits for a place holds no keys.
    const leave = isContended && purpose() !== "bookkeeping" ? await this.#contendedSlot() : undefined;
    const before = keys.map((key) => this.#last.get(key));
    const { promise, resolve } = Promise.withResolvers<void>();
    for (const key of keys) this.#last.set(key, promise);
    await Promise.all(before);
    const free = purpose() === "bookkeeping" ? () => {} : await this.#connection(purpose);
    return () => {
      for (const key of keys) if (this.#last.get(key) === promise) this.#last.delete(key);
      free();
      leave?.();
      resolve();
    };
  }

  async #contendedSlot(): Promise<() => void> {
    if (this.#freeForContended > 0) this.#freeForContended -= 1;
    else await new Promise<void>((begin) => this.#waitingContended.push(begin));
    return () => {
      const next = this.#waitingContended.shift();
      if (next) next();
      else this.#freeForContended += 1;
    };
  }

  #connection(purpose: () => Purpose): Promise<() => void> {
    return new Promise((begin) => {
      this.#waiting.push({ purpose, begin });
      this.beginNext();
    });
  }

  /** Starts the transactions for which there is a connection; to be called when the purpose of one has changed. */
  beginNext(): void {
    while (this.#free > 0) {
      const next = this.#waiting.shift();
      if (!next) return;
      this.#free -= 1;
      this.#underWay += 1;
      next.begin(() => {
        this.#underWay -= 1;
        this.#free += 1;
        this.beginNext();
      });
    }
    const job = this.#freeForJobs > 0 ? this.#waiting.findIndex(({ purpose }) => purpose() === "job") : -1;
    if (job === -1) return;
    this.#freeForJobs -= 1;
    this.#underWay += 1;
    this.#waiting.splice(job, 1)[0]?.begin(() => {
      this.#underWay -= 1;
      this.#freeForJobs += 1;
      this.beginNext();
    });
  }
}
