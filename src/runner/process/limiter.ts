/** Limits how many pieces of work run at the same time, and starts them in the order of their calls. */
export class Limiter {
  #free: number;
  /** Lets one piece of work begin, for each that waits. */
  readonly #waiting = new Set<() => void>();

  constructor(most: number) {
    this.#free = most;
  }

  /**
   * Runs `work` once there is room.
   *
   * @throws the reason of `signal` when that is aborted while it waits
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

  /** Resolves when the room of other work is handed over. */
  async #room(signal: AbortSignal | undefined): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onAbort = () => {
      // Where it is not in the set any more, it has its room and begins.
      if (this.#waiting.delete(resolve)) reject(signal?.reason);
    };
    this.#waiting.add(resolve);
    signal?.addEventListener("abort", onAbort);
    await promise.finally(() => signal?.removeEventListener("abort", onAbort));
  }
}
