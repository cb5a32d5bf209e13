/** Whose something is: an organization, and in it one who calls. */
export interface Owner {
  readonly organizationId: string;
  readonly callerId: string;
}

/**
 * What waits, by whose it is: every organization that waits gets a turn before
 * any gets a second one, and in it every caller.
 */
export class Turns<T> {
  /** In the order of turns, both; nobody without anything that waits. */
  readonly #waiting = new Map<string, Map<string, T[]>>();
  readonly #limits: { readonly each: number; readonly all: number };
  #count = 0;

  /** @param limits how much of one organization, and of all, may wait */
  constructor(limits: { readonly each: number; readonly all: number }) {
    this.#limits = limits;
  }

  /** How much waits. */
  get size(): number {
    return this.#count;
  }

  /** @returns false when too much waits already */
  add({ organizationId, callerId }: Owner, one: T): boolean {
    const callers = this.#waiting.get(organizationId) ?? new Map<string, T[]>();
    let count = 0;
    for (const { length } of callers.values()) count += length;
    if (count >= this.#limits.each || this.#count >= this.#limits.all) return false;
    const own = callers.get(callerId) ?? [];
    own.push(one);
    callers.set(callerId, own);
    this.#waiting.set(organizationId, callers);
    this.#count += 1;
    return true;
  }

  /** Takes what is next. */
  next(): T | undefined {
    const [organizationId, callers] = this.#waiting.entries().next().value ?? [];
    const [callerId, own = []] = callers?.entries().next().value ?? [];
    const one = own.shift();
    if (organizationId === undefined || callerId === undefined || one === undefined) return undefined;
    callers?.delete(callerId);
    if (callers && own.length > 0) callers.set(callerId, own);
    this.#waiting.delete(organizationId);
    if (callers && callers.size > 0) this.#waiting.set(organizationId, callers);
    this.#count -= 1;
    return one;
  }

  /** Takes out what shall not wait any longer; nothing happens when it does not wait. */
  remove({ organizationId, callerId }: Owner, one: T): void {
    const callers = this.#waiting.get(organizationId);
    const own = callers?.get(callerId) ?? [];
    const place = own.indexOf(one);
    if (place < 0) return;
    own.splice(place, 1);
    this.#count -= 1;
    if (own.length === 0) callers?.delete(callerId);
    if (callers?.size === 0) this.#waiting.delete(organizationId);
  }
}
