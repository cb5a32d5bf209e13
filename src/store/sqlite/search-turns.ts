/**
 * What waits, by whose it is: everybody who waits gets a turn before anybody
 * gets a second one.
 */
export class Turns<T> {
  /** In the order of turns; nobody without anything that waits. */
  readonly #waiting = new Map<string, T[]>();
  readonly #limits: { readonly each: number; readonly all: number };
  #count = 0;

  /** @param limits how much of one owner, and of all, may wait */
  constructor(limits: { readonly each: number; readonly all: number }) {
    this.#limits = limits;
  }

  /** @returns false when too much waits already */
  add(owner: string, one: T): boolean {
    const own = this.#waiting.get(owner) ?? [];
    if (own.length >= this.#limits.each || this.#count >= this.#limits.all) return false;
    own.push(one);
    this.#waiting.set(owner, own);
    this.#count += 1;
    return true;
  }

  /** Takes what is next. */
  next(): T | undefined {
    const [owner, own = []] = this.#waiting.entries().next().value ?? [];
    const one = own.shift();
    if (owner === undefined || one === undefined) return undefined;
    this.#waiting.delete(owner);
    if (own.length > 0) this.#waiting.set(owner, own);
    this.#count -= 1;
    return one;
  }

  /** Takes out what shall not wait any longer; nothing happens when it does not wait. */
  remove(owner: string, one: T): void {
    const own = this.#waiting.get(owner) ?? [];
    const place = own.indexOf(one);
    if (place < 0) return;
    own.splice(place, 1);
    this.#count -= 1;
    if (own.length === 0) this.#waiting.delete(owner);
  }
}
