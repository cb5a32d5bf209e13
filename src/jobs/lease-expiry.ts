import { handlerOf } from "../services/access/work-handlers.ts";
import { findExpiredLeases, findLease, renewLease } from "../store/runner/work-lease.ts";
import { type Store, SYSTEM, within } from "../store/store.ts";
import type { JobFactory } from "./job.ts";

const EVERY_MS = 1_000;

/** Maximum number of leases ended per run. */
const LEASES_PER_RUN = 100;

/** The delay before a lease that could not be ended is tried again. Without it, such leases could fill every run. */
const RETRY_AFTER_MS = 60_000;

/**
 * Ends the expired leases, at most 100 per call. Their work goes to another runner
 * or fails. Each lease is ended in its own transaction, so that one that cannot be
 * ended does not block the others.
 *
 * @param now milliseconds since 1970 UTC
 * @returns the number of expired leases
 * @throws AggregateError of the failures, after the other leases have ended
 */
export async function endExpiredLeases(store: Store, now: number): Promise<number> {
  const expired = await findExpiredLeases(store.reader, now, LEASES_PER_RUN);
  const failures: unknown[] = [];
  for (const { id, organization_id: organizationId, fence } of expired) {
    const scope = { organizationId };
    const ending = store.write(
      SYSTEM,
      "job/leases",
      async (tx) => {
        const lease = await findLease(tx.db, scope, id);
        // It may have been renewed, finished or assigned again since.
        if (!lease || lease.fence !== fence || lease.leased_by === null) return;
        if ((lease.expires_at ?? 0) > tx.now) return;
        await handlerOf(lease.kind).end(tx, scope, lease, { kind: "lost" });
      },
      within(scope),
    );
    await ending.catch(async (error: unknown) => {
      failures.push(error);
      const renewing = store.write(
        SYSTEM,
        "job/leases",
        (tx) => renewLease(tx, id, tx.now + RETRY_AFTER_MS),
        within(scope),
      );
      await renewing.catch((cause: unknown) => failures.push(cause));
    });
  }
  if (failures.length > 0) throw new AggregateError(failures, "leases that ran out could not be ended");
  return expired.length;
}

/** Ends expired leases. */
export const leaseExpiryJob: JobFactory = ({ store, now }) => ({
  name: "leases",
  everyMs: EVERY_MS,
  run: () => endExpiredLeases(store, now()),
});
