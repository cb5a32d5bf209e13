/** Limits how many pieces of work run at the same time, and starts them in the order of their calls. */
export class Limiter {
  #free: number;
  /** One function for each waiting piece of work, which lets it start. */
  readonly #waiting = new Set<() => void>();

  constructor(most: number) {
    this.#free = most;
  }

  /**
   * Runs `work` once a slot is free.
   *
   * @throws the reason of `signal` when that is aborted during the wait
   */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#room(signal);
    try {
      return await work();
    } finally {
      const [next] = this.#waiting;
      if (next) {
        this.#waiting.delete(next);
        next();
      } else this.#free++;
    }
  }

  /** Resolves when other work hands over its slot. */
  async #room(signal: AbortSignal | undefined): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onAbort = () => {
      // Work that is no longer in the set has its slot and starts.
      if (this.#waiting.delete(resolve)) reject(signal?.reason);
    };
    this.#waiting.add(resolve);
    signal?.addEventListener("abort", onAbort);
    await promise.finally(() => signal?.removeEventListener("abort", onAbort));
  }
}
