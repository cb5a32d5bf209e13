interface Waiting<T> {
  readonly bytes: number;
  readonly item: T;
}

/**
 * A queue of requests for a thread that alternates between callers, and takes the
 * smallest request of each first.
 */
export class ReadQueue<T> {
  /** In the order of their turns; none is empty. */
  readonly #callers = new Map<string, Waiting<T>[]>();

  /** Adds an item; returns a function that removes it, unless it was taken already. */
  add(caller: string, bytes: number, item: T): () => void {
    const waiting = this.#callers.get(caller) ?? [];
    const own = { bytes, item };
    const larger = waiting.findIndex((each) => each.bytes > bytes);
    waiting.splice(larger === -1 ? waiting.length : larger, 0, own);
    this.#callers.set(caller, waiting);
    return () => {
      const at = waiting.indexOf(own);
      if (at !== -1) waiting.splice(at, 1);
      if (waiting.length === 0 && this.#callers.get(caller) === waiting) this.#callers.delete(caller);
    };
  }

  /** Removes and returns the next item; undefined when the queue is empty. */
  next(): T | undefined {
    const [first] = this.#callers;
    if (!first) return undefined;
    const [caller, waiting] = first;
    const next = waiting.shift();
    // The caller goes to the end of the queue.
    this.#callers.delete(caller);
    if (waiting.length > 0) this.#callers.set(caller, waiting);
    return next?.item;
  }
}
