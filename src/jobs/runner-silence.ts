import { inactiveRunner, SILENCE_MS } from "../domain/runner/runner-life.ts";
import { findKnownRunner, findSilentRunners, updateRunner } from "../store/runner/runner-life.ts";
import { type Store, SYSTEM } from "../store/store.ts";
import type { MakeJob } from "./job.ts";

const EVERY_MS = 5_000;

/** Runners looked at in one run: each run is one transaction, which other writes wait for. */
const RUNNERS_A_RUN = 100;

/**
 * Shows the runners as inactive of which nothing was heard for 90 seconds, at
 * most 100 of them.
 *
 * @param now milliseconds since 1970 UTC
 * @returns how many
 */
export async function markSilentRunners(store: Store, now: number): Promise<number> {
  const cutoff = now - SILENCE_MS;
  // Nearly always there is none, and a transaction would be waited for in vain.
  if ((await findSilentRunners(store.reader, cutoff, 1)).length === 0) return 0;
  return store.write(SYSTEM, "job/runner-silence", async (tx) => {
    const silent = await findSilentRunners(tx.db, cutoff, RUNNERS_A_RUN);
    for (const { organizationId, runnerId } of silent) {
      const scope = { organizationId };
      const known = await findKnownRunner(tx.db, scope, runnerId);
      if (!known) continue;
      const runner = inactiveRunner(known.runner, tx.now);
      await updateRunner(tx, scope, known.runner, { ...known, runner, seenAt: null });
    }
    return silent.length;
  });
}

export const runnerSilenceJob: MakeJob = ({ store, now }) => ({
  name: "runner-silence",
  everyMs: EVERY_MS,
  run: () => markSilentRunners(store, now()),
});
