import { removeOldResponses } from "../store/record/idempotency.ts";
import { type Store, SYSTEM } from "../store/store.ts";
import type { JobFactory } from "./job.ts";

/** Expired responses are ignored until they are removed, so the interval may be long. */
const EVERY_MS = 600_000;

/** Number of responses removed per transaction, which other writes wait for. */
const RESPONSES_PER_BATCH = 1_000;

/**
 * Removes the expired responses that were stored for idempotent requests. This is
 * bookkeeping, so it leaves no audit row.
 *
 * @returns the number of responses removed
 */
export async function removeExpiredResponses(store: Store): Promise<number> {
  let removed = 0;
  for (;;) {
    const batch = await store.write(SYSTEM, "job/response-expiry", (tx) =>
      removeOldResponses(tx, RESPONSES_PER_BATCH),
    );
    removed += batch;
    if (batch < RESPONSES_PER_BATCH) return removed;
  }
}

/** Removes expired responses of idempotent requests. */
export const responseExpiryJob: JobFactory = ({ store }) => ({
  name: "response-expiry",
  everyMs: EVERY_MS,
  run: () => removeExpiredResponses(store),
});
