import pg from "pg";

/**
 * A connection that sends each query after the previous ones have ended, in the order of the calls. Code in a
 * transaction may issue several queries at once; the driver expects one at a time.
 */
export class OneAtATimeClient extends pg.Client {
  /** Resolves when the latest query has ended; undefined while there is none. */
  #last: Promise<void> | undefined;

  override query(...args: unknown[]): never {
    const send = () => Reflect.apply(super.query, this, args) as Promise<unknown>;
    const result = this.#last ? this.#last.then(send) : send();
    const forget = () => {
      if (this.#last === last) this.#last = undefined;
    };
    const last = result.then(forget, forget);
    this.#last = last;
    // Of the driver's many overloads only the one that returns a promise is used; `never` fits the declarations of all.
    return result as never;
  }
}
