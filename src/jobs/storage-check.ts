import type { Log } from "../log.ts";
import type { Store } from "../store/store.ts";
import type { JobFactory } from "./job.ts";

/** Interval of the checks of the feature level; the store counts these checks. */
const LEVEL_EVERY_MS = 1_000;

/** The server becomes ready within this time after the database accepts changes again. */
const EVERY_MS = 1_000;

/**
 * Creates the function that checks whether the database accepts changes, and logs
 * when that changes. It probes the database because a server that is not ready may
 * get no requests that would.
 */
function createStorageCheck(store: Pick<Store, "problem" | "probe">, log: Log): () => Promise<void> {
  let knownProblem: string | undefined;
  return async () => {
    await store.probe();
    const problem = store.problem();
    if (problem === knownProblem) return;
    knownProblem = problem;
    if (problem !== undefined) log.error({ problem }, "the database accepts no changes; reads still work");
    else log.info({}, "the database takes changes again");
  };
}

/** Checks whether the database accepts changes. */
export const storageCheckJob: JobFactory = ({ store, log }) => ({
  name: "storage",
  everyMs: EVERY_MS,
  isLocal: true,
  run: createStorageCheck(store, log),
});

/** Checks what the server needs of its machine, and logs when the result changes. */
export const machineCheckJob: JobFactory = ({ machine, log }) => {
  let known: ReadonlyMap<string, string> = new Map();
  return {
    name: "machine",
    everyMs: EVERY_MS,
    isLocal: true,
    async run() {
      await machine.check();
      const found = new Map(machine.problems().map(({ check, reason }) => [check, reason]));
      for (const [check, reason] of found)
        if (!known.has(check)) log.error({ check, reason }, "the server is not ready");
      for (const check of known.keys()) if (!found.has(check)) log.info({ check }, "a check is well again");
      known = found;
    },
  };
};

/** Raises the feature level once no server is left that would lose data of the new level. */
export const featureLevelJob: JobFactory = ({ store, log }) => ({
  name: "feature level",
  everyMs: LEVEL_EVERY_MS,
  async run() {
    const featureLevel = await store.raiseFeatureLevel();
    if (featureLevel !== undefined)
      log.info({ featureLevel }, "the feature level is raised: older servers cannot start any more");
  },
});
