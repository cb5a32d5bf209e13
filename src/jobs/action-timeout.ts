import { expireAction } from "../services/workflow/action/action-progress.ts";
import type { Store } from "../store/store.ts";
import { findExpiredActions } from "../store/workflow/workflow-action.ts";
import type { JobFactory } from "./job.ts";
import { writeInEach } from "./job-writes.ts";

const EVERY_MS = 1_000;

/** Maximum number of actions per run: other writes wait for those of their organization. */
const ACTIONS_PER_RUN = 100;

/**
 * Stops the actions that have reached their timeout, at most 100 per call. It does
 * not wait for their runners.
 *
 * @param now milliseconds since 1970 UTC
 * @returns the number of actions stopped
 */
export async function stopTimedOutActions(store: Store, now: number): Promise<number> {
  const found = await findExpiredActions(store.reader, now, ACTIONS_PER_RUN);
  return writeInEach(store, "job/action-time", found, async (tx, scope) => {
    const expired = await findExpiredActions(tx.db, now, ACTIONS_PER_RUN, scope.organizationId);
    for (const { id } of expired) await expireAction(tx, scope, id);
    return expired.length;
  });
}

/** Stops actions that have reached their timeout. */
export const actionTimeoutJob: JobFactory = ({ store, now }) => ({
  name: "action-time",
  everyMs: EVERY_MS,
  run: () => stopTimedOutActions(store, now()),
});
