import { expireAction } from "../services/workflow/action/action-progress.ts";
import { type Store, SYSTEM } from "../store/store.ts";
import { findExpiredActions } from "../store/workflow/workflow-action.ts";
import type { JobFactory } from "./job.ts";

const EVERY_MS = 1_000;

/** Maximum number of actions per run. A run is one transaction, which other writes wait for. */
const ACTIONS_PER_RUN = 100;

/**
 * Stops the actions that have reached their timeout, at most 100 per call. It does
 * not wait for their runners.
 *
 * @param now milliseconds since 1970 UTC
 * @returns the number of actions stopped
 */
export async function stopTimedOutActions(store: Store, now: number): Promise<number> {
  // There is almost never one, and a transaction would make other writes wait for nothing.
  if ((await findExpiredActions(store.reader, now, 1)).length === 0) return 0;
  return store.write(SYSTEM, "job/action-time", async (tx) => {
    const expired = await findExpiredActions(tx.db, now, ACTIONS_PER_RUN);
    for (const { organizationId, id } of expired) await expireAction(tx, { organizationId }, id);
    return expired.length;
  });
}

/** Stops actions that have reached their timeout. */
export const actionTimeoutJob: JobFactory = ({ store, now }) => ({
  name: "action-time",
  everyMs: EVERY_MS,
  run: () => stopTimedOutActions(store, now()),
});
