/** The owner of a query: an organization, and one of its callers. */
export interface SearchOwner {
  readonly organizationId: string;
  readonly callerId: string;
}

/**
 * A fair queue: every waiting organization gets a turn before any gets a second one, and so does
 * every caller within its organization.
 */
export class FairQueue<T> {
  /** Waiting elements in the order of turns by organization and caller; without empty entries. */
  readonly #waiting = new Map<string, Map<string, T[]>>();
  readonly #limits: { readonly each: number; readonly all: number };
  #count = 0;

  /**
   * Creates a queue.
   * @param limits maximum number of waiting elements of one organization, and of all
   */
  constructor(limits: { readonly each: number; readonly all: number }) {
    this.#limits = limits;
  }

  /** Returns the number of waiting elements. */
  get size(): number {
    return this.#count;
  }

  /**
   * Adds an element to the queue.
   * @returns false when too many wait already
   */
  add({ organizationId, callerId }: SearchOwner, one: T): boolean {
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

  /** Removes and returns the next element. */
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

  /** Removes an element that shall not wait any longer; does nothing when it does not wait. */
  remove({ organizationId, callerId }: SearchOwner, one: T): void {
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
