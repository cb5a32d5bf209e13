type Listener = () => void;

/** Who is told of commits: of each, or only of those that change a resource, and of all those of others. */
export class Listeners {
  readonly #ofAll = new Set<Listener>();
  readonly #ofOne = new Map<string, Set<Listener>>();
  readonly #changed = new Set<string>();

  /** @returns what ends it */
  add(listener: Listener): () => void {
    this.#ofAll.add(listener);
    return () => void this.#ofAll.delete(listener);
  }

  /** @returns what ends it */
  addOf(id: string, listener: Listener): () => void {
    const listeners = this.#ofOne.get(id) ?? new Set();
    this.#ofOne.set(id, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#ofOne.get(id) === listeners) this.#ofOne.delete(id);
    };
  }

  /** Notes what the coming commit changes. Should that fail, somebody looks in vain at the next one. */
  expect(ids: Iterable<string>): void {
    for (const id of ids) this.#changed.add(id);
  }

  /** To be called after a commit of which nobody knows what it changed. */
  callAll(): void {
    const told = [...this.#ofOne.values()].flatMap((listeners) => [...listeners]);
    for (const listener of [...this.#ofAll, ...told]) listener();
  }

  /** To be called after a commit. */
  call(): void {
    const told = [...this.#changed].flatMap((id) => [...(this.#ofOne.get(id) ?? [])]);
    this.#changed.clear();
    for (const listener of [...this.#ofAll, ...told]) listener();
  }
}
