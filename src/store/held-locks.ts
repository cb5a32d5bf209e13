import type { Change, Lock } from "./store.ts";

/** The locks that a write holds: what it may change. */
export class HeldLocks {
  /** Undefined for the lock of the installation, which covers everything. */
  readonly #locks: Set<Lock> | undefined;

  constructor(locks: readonly Lock[] | "installation") {
    this.#locks = typeof locks === "string" ? undefined : new Set(locks);
  }

  /** Returns the locks that are needed but not held. */
  missing(needed: readonly Lock[]): Lock[] {
    const locks = this.#locks;
    return locks ? needed.filter((lock) => !locks.has(lock)) : [];
  }

  /** Adds an organization that the write creates: it is visible to nobody else before the commit. */
  addCreated(organizationId: string): void {
    this.#locks?.add(organizationId);
  }

  /** @throws Error for a change of data that is not locked, which another write may change at the same time */
  requireChange({ organizationId, type, id, kind }: Change): void {
    if (type === "organization" && kind === "created") this.addCreated(id);
    this.requireRow(organizationId, `${type} ${id}`);
  }

  /** @throws Error for a row that the locks do not cover */
  requireRow(owner: Lock, what: string): void {
    if (!this.#locks || this.#locks.has(owner)) return;
    const named = owner === null ? "the installation" : `organization ${owner}`;
    throw new Error(`a write changes ${what} of ${named}, which it has not locked`);
  }
}
