/** A place where an earlier area calls a later one, which the order of areas forbids it to import. */
export interface Hook<A extends readonly unknown[]> {
  /** Sets what is called, once, where the areas meet: src/services/access/hooks.ts. */
  set(called: (...args: A) => Promise<void>): void;
  /** @throws Error while nothing is set: a process that was put together without it must not go on silently */
  call(...args: A): Promise<void>;
}

/** Creates a hook; `name` is for the error of one that is not set. */
export function createHook<A extends readonly unknown[]>(name: string): Hook<A> {
  let called: ((...args: A) => Promise<void>) | undefined;
  return {
    set(next) {
      called = next;
    },
    async call(...args) {
      if (!called) throw new Error(`nothing is set for ${name}: import services/access/hooks.ts`);
      await called(...args);
    },
  };
}
