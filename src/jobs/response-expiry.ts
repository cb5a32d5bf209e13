import { findOldResponses, removeResponses } from "../store/record/idempotency.ts";
import { type Store, SYSTEM, type WriteTransaction } from "../store/store.ts";
import type { JobFactory } from "./job.ts";

/** Expired responses are ignored until they are removed, so the interval may be long. */
const EVERY_MS = 600_000;

/** Number of responses removed at a time: other writes wait for those of their organization. */
const RESPONSES_PER_BATCH = 1_000;

/**
 * Removes the expired responses that were stored for idempotent requests. This is
 * bookkeeping, so it leaves no audit row.
 *
 * @param now milliseconds since 1970 UTC
 * @returns the number of responses removed
 */
export async function removeExpiredResponses(store: Store, now: number): Promise<number> {
  let removed = 0;
  for (;;) {
    const old = await findOldResponses(store.reader, now, RESPONSES_PER_BATCH);
    let batch = 0;
    for (const { organizationId, until } of old) {
      const remove = (tx: WriteTransaction) => removeResponses(tx, organizationId, until);
      batch += await store.write(SYSTEM, "job/response-expiry", remove, { locks: [organizationId] });
    }
    removed += batch;
    if (batch < RESPONSES_PER_BATCH) return removed;
  }
}

/** Removes expired responses of idempotent requests. */
export const responseExpiryJob: JobFactory = ({ store, now }) => ({
  name: "response-expiry",
  everyMs: EVERY_MS,
  run: () => removeExpiredResponses(store, now()),
});
