interface Waiting<T> {
  readonly bytes: number;
  readonly item: T;
}

/** What waits for a thread, in turns: one caller after the other, and of each the smallest first. */
export class ReadQueue<T> {
  /** In the order of their turns; none is empty. */
  readonly #callers = new Map<string, Waiting<T>[]>();

  /** Puts an item in; what is returned takes it out again, unless it had its turn. */
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

  /** Takes out whose turn it is; undefined when nothing waits. */
  next(): T | undefined {
    const [first] = this.#callers;
    if (!first) return undefined;
    const [caller, waiting] = first;
    const next = waiting.shift();
    // Behind all others.
    this.#callers.delete(caller);
    if (waiting.length > 0) this.#callers.set(caller, waiting);
    return next?.item;
  }
}
