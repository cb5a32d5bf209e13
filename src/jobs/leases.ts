import { handlerOf } from "../services/access/work-handlers.ts";
import { findExpired, findLease, renewLease } from "../store/runner/work-lease.ts";
import { type Store, SYSTEM } from "../store/store.ts";
import type { MakeJob } from "./job.ts";

const EVERY_MS = 1_000;

/** Leases ended in one run. */
const LEASES_A_RUN = 100;

/** How long a lease is left alone that cannot be ended: as many of them as a run has would keep it from all others. */
const RETRY_AFTER_MS = 60_000;

/**
 * Ends the leases that ran out, at most 100 of them: their work goes to another,
 * or has failed. Each is a transaction of its own, so that one that cannot be
 * ended holds up no other.
 *
 * @param now milliseconds since 1970 UTC
 * @returns how many
 * @throws AggregateError of what went wrong, after the others were ended
 */
export async function endExpiredLeases(store: Store, now: number): Promise<number> {
  const expired = await findExpired(store.reader, now, LEASES_A_RUN);
  const failures: unknown[] = [];
  for (const { id, fence } of expired) {
    const ending = store.write(SYSTEM, "job/leases", async (tx) => {
      const lease = await findLease(tx.db, id);
      // It may have been renewed, finished or given out anew since.
      if (!lease || lease.fence !== fence || lease.leased_by === null) return;
      if ((lease.expires_at ?? 0) > tx.now) return;
      const scope = { organizationId: lease.organization_id };
      await handlerOf(lease.kind).end(tx, scope, lease, { kind: "lost" });
    });
    await ending.catch(async (error: unknown) => {
      failures.push(error);
      const renewing = store.write(SYSTEM, "job/leases", (tx) => renewLease(tx, id, tx.now + RETRY_AFTER_MS));
      await renewing.catch((cause: unknown) => failures.push(cause));
    });
  }
  if (failures.length > 0) throw new AggregateError(failures, "leases that ran out could not be ended");
  return expired.length;
}

export const leasesJob: MakeJob = ({ store, now }) => ({
  name: "leases",
  everyMs: EVERY_MS,
  run: () => endExpiredLeases(store, now()),
});
