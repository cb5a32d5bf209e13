/** A function that an earlier area calls and a later area provides, because the order of areas forbids the import. */
export interface Hook<A extends readonly unknown[], R = void> {
  /** Sets the function, once, in src/services/access/hooks.ts. */
  set(called: (...args: A) => Promise<R>): void;
  /** Calls the function. @throws Error when none is set, so that a misconfigured process does not continue silently */
  call(...args: A): Promise<R>;
}

/** Creates a hook. @param name appears in the error when no function is set */
export function createHook<A extends readonly unknown[], R = void>(name: string): Hook<A, R> {
  let called: ((...args: A) => Promise<R>) | undefined;
  return {
    set(next) {
      called = next;
    },
    async call(...args) {
      if (!called) throw new Error(`nothing is set for ${name}: import services/access/hooks.ts`);
      return called(...args);
    },
  };
}
