import { deletedEnvironment, wasNeverAssigned } from "../domain/environment/environment.ts";
import { limitMs } from "../domain/policy/policy-limit.ts";
import { changeEnvironment, deleteEnvironmentRow } from "../services/environment/environment-change.ts";
import { findDeletable } from "../store/environment/environment-age.ts";
import { findAllSetPolicies } from "../store/policy/organization-policies.ts";
import { type Scope, type Store, SYSTEM, type WriteTransaction, within } from "../store/store.ts";
import type { JobFactory } from "./job.ts";

/** Policies count in days, so a minute is precise enough. */
const EVERY_MS = 60_000;

/** Number of environments deleted per transaction, which other writes wait for. */
const ENVIRONMENTS_PER_BATCH = 100;

/**
 * Deletes the environments that have been archived for as long as their
 * organization's policy says. It deletes as DeleteEnvironment does: when an
 * environment has a runner, the runner cleans up first.
 *
 * @param now milliseconds since 1970 UTC
 * @returns the number of environments deleted or marked for deletion
 */
export async function deleteArchivedEnvironments(store: Store, now: number): Promise<number> {
  let deleted = 0;
  for (const { organizationId, policies } of await findAllSetPolicies(store.reader)) {
    const after = limitMs(policies.deleteArchivedEnvironmentsAfter);
    if (after === undefined) continue;
    const scope = { organizationId };
    const deleteBatch = (tx: WriteTransaction) => deleteArchived(tx, scope, now - after);
    for (;;) {
      const batch = await store.write(SYSTEM, "job/deletion", deleteBatch, within(scope));
      deleted += batch;
      if (batch < ENVIRONMENTS_PER_BATCH) break;
    }
  }
  return deleted;
}

async function deleteArchived(tx: WriteTransaction, scope: Scope, archivedUntil: number): Promise<number> {
  const found = await findDeletable(tx.db, scope, archivedUntil, ENVIRONMENTS_PER_BATCH);
  for (const each of found) {
    const marked = deletedEnvironment(each);
    if (wasNeverAssigned(each)) await deleteEnvironmentRow(tx, scope, each);
    else if (marked) await changeEnvironment(tx, scope, each, marked);
  }
  return found.length;
}

/** Deletes archived environments. */
export const environmentDeletionJob: JobFactory = ({ store, now }) => ({
  name: "deletion",
  everyMs: EVERY_MS,
  run: () => deleteArchivedEnvironments(store, now()),
});
