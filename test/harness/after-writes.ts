import { jest } from "@jest/globals";
import type { Store } from "../../src/store/store.ts";

/**
 * Calls `look` after each write of a store, and lets the writer go on once it has ended. Listeners of commits do not
 * suffice for that: on PostgreSQL they are also called without a commit of this process, and what they read may be
 * answered after the next commits.
 * @returns the function that ends it
 */
export function afterWrites(store: Store, look: (operation: string) => void | Promise<void>): () => void {
  const write = store.write.bind(store);
  const spy = jest.spyOn(store, "write").mockImplementation(async (actor, operation, ...rest) => {
    const written = await write(actor, operation, ...rest);
    await look(operation);
    return written;
  });
  return () => spy.mockRestore();
}
