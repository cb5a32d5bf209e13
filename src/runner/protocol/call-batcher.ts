/** Longest time that an entry waits for others, in milliseconds. */
const MAX_WAIT_MS = 20;

export interface CallBatcherOptions<E, R> {
  /** Sends entries in one call, and returns the result of each. A rejection is the result of all of them. */
  readonly send: (entries: readonly E[]) => Promise<readonly PromiseSettledResult<R>[]>;
  /** Returns the bytes of an entry as it is when it is sent, about. */
  readonly sizeOf: (entry: E) => number;
  /** Maximum of the contract for the entries of one call. */
  readonly maxEntries: number;
  /** Maximum size of the entries of one call together; a single entry may be larger. */
  readonly maxBytes: number;
}

interface Waiting<E, R> {
  readonly entry: E;
  readonly resolve: (result: R) => void;
  readonly reject: (cause: unknown) => void;
}

/**
 * Joins what is to be sent at about the same time into one call. An entry that is added while no call
 * is under way is sent in the same turn of the event loop; while one is, it waits for its end, and for
 * 20 ms at most.
 */
export class CallBatcher<E, R> {
  readonly #options: CallBatcherOptions<E, R>;
  #waiting: Waiting<E, R>[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isDue = false;
  #callsUnderWay = 0;

  constructor(options: CallBatcherOptions<E, R>) {
    this.#options = options;
  }

  /**
   * Sends an entry with others.
   *
   * @param mayWait true when it need not be sent before its time is over, or before an entry that may not wait
   * @throws the rejection of its result, or of the call
   */
  add(entry: E, { mayWait = false } = {}): Promise<R> {
    return new Promise<R>((resolve, reject) => {
      this.#waiting.push({ entry, resolve, reject });
      this.#timer ??= setTimeout(() => this.#sendAll(), MAX_WAIT_MS);
      if (!mayWait) this.hurry();
    });
  }

  /** Sends what waits without waiting for more, unless a call is under way. */
  hurry(): void {
    if (this.#isDue || this.#callsUnderWay > 0 || this.#waiting.length === 0) return;
    this.#isDue = true;
    setImmediate(() => this.#sendAll());
  }

  #sendAll(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#isDue = false;
    while (this.#waiting.length > 0) void this.#sendPart(this.#nextPart());
  }

  #nextPart(): Waiting<E, R>[] {
    const { maxEntries, maxBytes, sizeOf } = this.#options;
    let [count, bytes] = [0, 0];
    for (const { entry } of this.#waiting) {
      bytes += sizeOf(entry);
      if (count === maxEntries || (count > 0 && bytes > maxBytes)) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  async #sendPart(part: readonly Waiting<E, R>[]): Promise<void> {
    this.#callsUnderWay += 1;
    try {
      const results = await this.#options.send(part.map(({ entry }) => entry));
      for (const [index, { resolve, reject }] of part.entries()) {
        const result = results[index];
        if (result?.status === "fulfilled") resolve(result.value);
        else reject(result?.reason ?? new Error("the server gave no result for a part of a call"));
      }
    } catch (cause) {
      for (const { reject } of part) reject(cause);
    }
    this.#callsUnderWay -= 1;
    this.hurry();
  }
}
