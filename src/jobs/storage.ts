import type { Log } from "../log.ts";
import type { Store } from "../store/store.ts";
import type { MakeJob } from "./job.ts";

/** The server is ready again so soon after the database takes changes again. */
const EVERY_MS = 1_000;

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

export const storageJob: MakeJob = ({ store, log }) => ({
  name: "storage",
  everyMs: EVERY_MS,
  run: watchStorage(store, log),
});
