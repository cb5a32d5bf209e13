import { stoppedEnvironment } from "../domain/environment/environment.ts";
import { isPastLifetime } from "../domain/environment/environment-policy.ts";
import { changeEnvironment } from "../services/environment/environment-change.ts";
import { findPastLifetime } from "../store/environment/environment-age.ts";
import type { Scope, Store, WriteTransaction } from "../store/store.ts";
import type { JobFactory } from "./job.ts";
import { writeInEach } from "./job-writes.ts";

/** Policies count in days, so a minute is precise enough. */
const EVERY_MS = 60_000;

/** Number of environments checked at a time: other writes wait for those of their organization. */
const ENVIRONMENTS_PER_BATCH = 100;

/**
 * Stops the environments whose lifetime has ended. An environment that was started
 * again after its end keeps running where the lifetime is not strict.
 *
 * @param now milliseconds since 1970 UTC
 * @returns the number of environments stopped
 */
export async function stopExpiredEnvironments(store: Store, now: number): Promise<number> {
  let stopped = 0;
  let afterId = "";
  for (;;) {
    const batch = await findPastLifetime(store.reader, now, afterId, ENVIRONMENTS_PER_BATCH);
    const past = batch.filter(({ environment }) => isPastLifetime(environment, now));
    stopped += await writeInEach(store, "job/lifetime", past, (tx, scope) =>
      stopExpired(tx, scope, now, afterId),
    );
    afterId = batch.at(-1)?.environment.id ?? afterId;
    if (batch.length < ENVIRONMENTS_PER_BATCH) return stopped;
  }
}

async function stopExpired(
  tx: WriteTransaction,
  scope: Scope,
  now: number,
  afterId: string,
): Promise<number> {
  let stopped = 0;
  const found = await findPastLifetime(tx.db, now, afterId, ENVIRONMENTS_PER_BATCH, scope.organizationId);
  for (const { environment } of found) {
    const after = isPastLifetime(environment, now) ? stoppedEnvironment(environment) : undefined;
    if (!after) continue;
    await changeEnvironment(tx, scope, environment, after);
    stopped += 1;
  }
  return stopped;
}

/** Stops environments whose lifetime has ended. */
export const environmentLifetimeJob: JobFactory = ({ store, now }) => ({
  name: "lifetime",
  everyMs: EVERY_MS,
  run: () => stopExpiredEnvironments(store, now()),
});
