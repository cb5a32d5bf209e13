type Listener = () => void;

/**
 * The listeners of commits: of every commit, or only of commits that change a resource, and of all
 * commits of others.
 */
export class Listeners {
  readonly #ofAll = new Set<Listener>();
  readonly #ofOne = new Map<string, Set<Listener>>();
  readonly #changed = new Set<string>();

  /**
   * Adds a listener.
   * @returns the function that removes it
   */
  add(listener: Listener): () => void {
    this.#ofAll.add(listener);
    return () => void this.#ofAll.delete(listener);
  }

  /**
   * Adds a listener.
   * @returns the function that removes it
   */
  addOf(id: string, listener: Listener): () => void {
    const listeners = this.#ofOne.get(id) ?? new Set();
    this.#ofOne.set(id, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#ofOne.get(id) === listeners) this.#ofOne.delete(id);
    };
  }

  /**
   * Records the resources that the coming commit changes. When that commit fails, listeners are
   * called needlessly at the next one.
   */
  expect(ids: Iterable<string>): void {
    for (const id of ids) this.#changed.add(id);
  }

  /** Calls every listener, after a commit whose changes are unknown. */
  callAll(): void {
    const concerned = [...this.#ofOne.values()].flatMap((listeners) => [...listeners]);
    for (const listener of [...this.#ofAll, ...concerned]) listener();
  }

  /** Calls the listeners of a commit, after it. */
  call(): void {
    const concerned = [...this.#changed].flatMap((id) => [...(this.#ofOne.get(id) ?? [])]);
    this.#changed.clear();
    for (const listener of [...this.#ofAll, ...concerned]) listener();
  }
}

/** The other servers of a database. Messages may be lost; nothing may depend on their delivery. */
export interface Others {
  /** Sends a text of fewer than 7,900 bytes to all of them. */
  tell(text: string): void;
  /** Calls `listener` with each text that another server sends. */
  onMessage(listener: (text: string) => void): void;
}
