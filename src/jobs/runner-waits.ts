import { waitMessage } from "../domain/runner/kept-policies.ts";
import { handlerOf } from "../services/access/work-handlers.ts";
import { beginWait, isKeeperConnected } from "../services/runner/held-work.ts";
import { endAsFailed } from "../services/runner/unusable-work.ts";
import {
  endWaiting,
  findHeldGroups,
  findLongWaits,
  findUnnotifiedWork,
  type HeldGroup,
  setWaiting,
} from "../store/runner/held-work.ts";
import type { StoredWork } from "../store/runner/work.ts";
import { findLease } from "../store/runner/work-lease.ts";
import { type Store, SYSTEM, within } from "../store/store.ts";
import type { JobFactory } from "./job.ts";

/** Delay that this job adds before users learn that the last runner that supports a policy has disconnected. */
const EVERY_MS = 5_000;

const OPERATION = "job/runner-waits";

/** Maximum number of work items of a group that begin to wait, and of those that fail, per run. */
const WORKS_PER_RUN = 100;

/** The delay before work that could not be failed is tried again. Without it, such work could fill every run. */
const RETRY_AFTER_MS = 60_000;

/**
 * Lets held work begin to wait when no connected runner supports what it needs, ends the wait when one does, and fails
 * work that has waited too long.
 *
 * @param waitMs time that work waits
 * @param now milliseconds since 1970 UTC
 * @throws AggregateError of the failures, after all others
 */
export async function followRunnerWaits(store: Store, waitMs: number, now: number): Promise<void> {
  const failures: unknown[] = [];
  for (const group of await findHeldGroups(store.reader)) {
    await followGroup(store, group).catch((error: unknown) => failures.push(error));
  }
  for (const work of await findLongWaits(store.reader, now - waitMs, WORKS_PER_RUN)) {
    await failWait(store, work, waitMs).catch((error: unknown) => failures.push(error));
  }
  if (failures.length > 0)
    throw new AggregateError(failures, "work that waits for a runner was not followed");
}

async function followGroup(store: Store, group: HeldGroup): Promise<void> {
  const scope = { organizationId: group.organization_id };
  const isConnected = await isKeeperConnected(store.reader, scope, group);
  if (isConnected ? group.waiting === 0 : group.waiting === group.total) return;
  await store.write(
    SYSTEM,
    OPERATION,
    async (tx) => {
      // It may have changed since.
      if (await isKeeperConnected(tx.db, scope, group)) return endWaiting(tx, scope, group);
      for (const work of await findUnnotifiedWork(tx.db, scope, group, WORKS_PER_RUN)) {
        await beginWait(tx, scope, work, handlerOf);
      }
    },
    within(scope),
  );
}

async function failWait(
  store: Store,
  { id, organization_id: organizationId }: StoredWork,
  waitMs: number,
): Promise<void> {
  const scope = { organizationId };
  const failing = store.write(
    SYSTEM,
    OPERATION,
    async (tx) => {
      const work = await findLease(tx.db, scope, id);
      if (!work || work.leased_by !== null || work.waiting_since === null) return;
      if (work.waiting_since > tx.now - waitMs) return;
      const failure = { reason: "policy_unsupported", message: waitMessage(work.needs) };
      await endAsFailed(tx, scope, work, handlerOf, failure);
    },
    within(scope),
  );
  await failing.catch(async (error: unknown) => {
    const again = (now: number) => now - waitMs + RETRY_AFTER_MS;
    await store.write(SYSTEM, OPERATION, async (tx) => setWaiting(tx, id, again(tx.now)), within(scope));
    throw error;
  });
}

/** Updates work that waits for runners. */
export const runnerWaitsJob: JobFactory = ({ store, now, settings }) => ({
  name: "runner-waits",
  everyMs: EVERY_MS,
  run: () => followRunnerWaits(store, settings.runnerWait * 1_000, now()),
});
