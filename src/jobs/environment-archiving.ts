import { archivedEnvironment } from "../domain/environment/environment.ts";
import { limitMs } from "../domain/policy/policy-limit.ts";
import { updateEnvironment } from "../store/environment/environment.ts";
import { findArchivable } from "../store/environment/environment-age.ts";
import { findAllSetPolicies } from "../store/policy/organization-policies.ts";
import { type Store, SYSTEM, type WriteTransaction, within } from "../store/store.ts";
import type { JobFactory } from "./job.ts";

/** Policies count in days, so a minute is precise enough. */
const EVERY_MS = 60_000;

/** Number of environments archived per transaction, which other writes wait for. */
const ENVIRONMENTS_PER_BATCH = 100;

/**
 * Archives the environments that have been inactive for as long as their
 * organization's policy says. The policy applies only to organizations that the
 * operator marked as enterprise.
 *
 * @param now milliseconds since 1970 UTC
 * @returns the number of environments archived
 */
export async function archiveEnvironments(store: Store, now: number): Promise<number> {
  let archived = 0;
  for (const { organizationId, enterprise, policies } of await findAllSetPolicies(store.reader)) {
    const after = limitMs(policies.archiveEnvironmentsAfter);
    if (!enterprise || after === undefined) continue;
    const scope = { organizationId };
    const archiveBatch = async (tx: WriteTransaction) => {
      const found = await findArchivable(tx.db, scope, now - after, ENVIRONMENTS_PER_BATCH);
      for (const each of found) await updateEnvironment(tx, scope, each, archivedEnvironment(each, now));
      return found.length;
    };
    for (;;) {
      const batch = await store.write(SYSTEM, "job/archive", archiveBatch, within(scope));
      archived += batch;
      if (batch < ENVIRONMENTS_PER_BATCH) break;
    }
  }
  return archived;
}

/** Archives inactive environments. */
export const environmentArchivingJob: JobFactory = ({ store, now }) => ({
  name: "archive",
  everyMs: EVERY_MS,
  run: () => archiveEnvironments(store, now()),
});
