import { deletedEnvironment, isUntouched } from "../domain/environment/environment.ts";
import { limitMs } from "../domain/policy/policy-limit.ts";
import { changeEnvironment, deleteEnvironmentRow } from "../services/environment/environment-change.ts";
import { findDeletable } from "../store/environment/environment-age.ts";
import { findAllSetPolicies } from "../store/policy/organization-policies.ts";
import { type Store, SYSTEM } from "../store/store.ts";
import type { MakeJob } from "./job.ts";

/** Policies count in days. */
const EVERY_MS = 60_000;

/** Environments deleted at a time: each time is one transaction, which other writes wait for. */
const ENVIRONMENTS_A_BATCH = 100;

/**
 * Deletes the environments that have been archived as long as their
 * organization's policy says: as DeleteEnvironment does it, so that a runner
 * cleans up first where one has taken an environment on.
 *
 * @param now milliseconds since 1970 UTC
 * @returns how many were deleted, or marked so
 */
export async function deleteArchivedEnvironments(store: Store, now: number): Promise<number> {
  let deleted = 0;
  for (const { organizationId, policies } of await findAllSetPolicies(store.reader)) {
    const after = limitMs(policies.deleteArchivedEnvironmentsAfter);
    if (after === undefined) continue;
    const scope = { organizationId };
    for (;;) {
      const batch = await store.write(SYSTEM, "job/deletion", async (tx) => {
        const found = await findDeletable(tx.db, scope, now - after, ENVIRONMENTS_A_BATCH);
        for (const each of found) {
          const marked = deletedEnvironment(each);
          if (isUntouched(each)) await deleteEnvironmentRow(tx, scope, each);
          else if (marked) await changeEnvironment(tx, scope, each, marked);
        }
        return found.length;
      });
      deleted += batch;
      if (batch < ENVIRONMENTS_A_BATCH) break;
    }
  }
  return deleted;
}

export const deletionJob: MakeJob = ({ store, now }) => ({
  name: "deletion",
  everyMs: EVERY_MS,
  run: () => deleteArchivedEnvironments(store, now()),
});
