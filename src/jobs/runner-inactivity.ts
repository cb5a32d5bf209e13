import { INACTIVE_AFTER_MS, inactiveRunner } from "../domain/runner/runner-heartbeat.ts";
import { findSilentRunners, findStoredRunner, updateRunner } from "../store/runner/runner-life.ts";
import type { Store } from "../store/store.ts";
import type { JobFactory } from "./job.ts";
import { writeInEach } from "./job-writes.ts";

const EVERY_MS = 5_000;

/** Maximum number of runners marked per run: other writes wait for those of their organization. */
const RUNNERS_PER_RUN = 100;

/**
 * Marks the runners as inactive that have sent nothing for 90 seconds, at most 100
 * per call.
 *
 * @param now milliseconds since 1970 UTC
 * @returns the number of runners found
 */
export async function markInactiveRunners(store: Store, now: number): Promise<number> {
  const cutoff = now - INACTIVE_AFTER_MS;
  const found = await findSilentRunners(store.reader, cutoff, RUNNERS_PER_RUN);
  return writeInEach(store, "job/runner-silence", found, async (tx, scope) => {
    const silent = await findSilentRunners(tx.db, cutoff, RUNNERS_PER_RUN, scope.organizationId);
    for (const { runnerId } of silent) {
      const known = await findStoredRunner(tx.db, scope, runnerId);
      if (!known) continue;
      const runner = inactiveRunner(known.runner, tx.now);
      await updateRunner(tx, scope, known.runner, { ...known, runner, seenAt: null });
    }
    return silent.length;
  });
}

/** Marks runners without a heartbeat as inactive. */
export const runnerInactivityJob: JobFactory = ({ store, now }) => ({
  name: "runner-silence",
  everyMs: EVERY_MS,
  run: () => markInactiveRunners(store, now()),
});
