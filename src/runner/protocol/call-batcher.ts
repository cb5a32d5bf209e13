/** Maximum time that an entry waits for others, in milliseconds. */
const MAX_WAIT_MS = 20;

export interface CallBatcherOptions<E, R> {
  /** Sends entries in one call and returns the result of each. A rejection is the result of every entry. */
  readonly send: (entries: readonly E[]) => Promise<readonly PromiseSettledResult<R>[]>;
  /** Returns the approximate size of an entry when sent, in bytes. */
  readonly sizeOf: (entry: E) => number;
  /** The contract's maximum for entries in one call. */
  readonly maxEntries: number;
  /** Maximum total size of the entries in one call; a single entry may be larger. */
  readonly maxBytes: number;
}

interface Waiting<E, R> {
  readonly entry: E;
  readonly resolve: (result: R) => void;
  readonly reject: (cause: unknown) => void;
}

/**
 * Batches entries into one call. An entry added while no call is in flight is sent in the same turn of the event
 * loop. Otherwise it waits for that call to end, for at most 20 ms.
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
   * Sends an entry together with others.
   *
   * @param mayWait true if it may wait for its maximum time, or for an entry that may not wait
   * @throws the rejection of its result, or of the call
   */
  add(entry: E, { mayWait = false } = {}): Promise<R> {
    return new Promise<R>((resolve, reject) => {
      this.#waiting.push({ entry, resolve, reject });
      this.#timer ??= setTimeout(() => this.#sendAll(), MAX_WAIT_MS);
      if (!mayWait) this.hurry();
    });
  }

  /** Sends waiting entries at once, unless a call is in flight. */
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
