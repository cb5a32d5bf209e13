import type { Log } from "../log.ts";
import type { Store } from "../store/store.ts";

/**
 * Makes the job that watches whether the database takes changes: it logs when it
 * stops to and when it does again, and asks it again meanwhile, since a server
 * that is not ready may get no requests that would.
 */
export function watchStorage(store: Pick<Store, "problem" | "probe">, log: Log): () => Promise<void> {
  let known: string | undefined;
  return async () => {
    await store.probe();
    const problem = store.problem();
    if (problem === known) return;
    known = problem;
    if (problem !== undefined) log.error({ problem }, "the database takes no changes; reads go on");
    else log.info({}, "the database takes changes again");
  };
}
