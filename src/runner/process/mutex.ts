/** Runs pieces of work one after the other, in the order of their calls. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  /**
   * Runs `work` once all earlier work has ended.
   *
   * @throws the reason of `signal` when that is aborted while it waits
   */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const before = this.#last;
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    this.#last = before.then(() => ended);
    try {
      await untilAborted(before, signal);
      return await work();
    } finally {
      end();
    }
  }
}

/** Waits for a promise; rejects with the reason of `signal` when that is aborted before. */
async function untilAborted(promise: Promise<unknown>, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal?.reason);
  signal?.addEventListener("abort", onAbort);
  try {
    await Promise.race([promise, aborted.promise]);
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}
