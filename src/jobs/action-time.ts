import { expireAction } from "../services/workflow/action/action-progress.ts";
import { type Store, SYSTEM } from "../store/store.ts";
import { findExpiredActions } from "../store/workflow/workflow-action.ts";
import type { MakeJob } from "./job.ts";

const EVERY_MS = 1_000;

/** Actions stopped in one run: each run is one transaction, which other writes wait for. */
const ACTIONS_A_RUN = 100;

/**
 * Stops the actions whose longest time is over, at most 100 of them, whatever
 * their runners do about it.
 *
 * @param now milliseconds since 1970 UTC
 * @returns how many
 */
export async function stopTimedOutActions(store: Store, now: number): Promise<number> {
  // Nearly always there is none, and a transaction would be waited for in vain.
  if ((await findExpiredActions(store.reader, now, 1)).length === 0) return 0;
  return store.write(SYSTEM, "job/action-time", async (tx) => {
    const expired = await findExpiredActions(tx.db, now, ACTIONS_A_RUN);
    for (const { organizationId, id } of expired) await expireAction(tx, { organizationId }, id);
    return expired.length;
  });
}

export const actionTimeJob: MakeJob = ({ store, now }) => ({
  name: "action-time",
  everyMs: EVERY_MS,
  run: () => stopTimedOutActions(store, now()),
});
