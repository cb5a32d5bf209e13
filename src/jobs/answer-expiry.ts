import { removeOldAnswers } from "../store/record/idempotency.ts";
import { type Store, SYSTEM } from "../store/store.ts";
import type { MakeJob } from "./job.ts";

/** Until they are removed, stored responses that are too old are ignored. */
const EVERY_MS = 600_000;

/** Answers removed at a time: each time is one transaction, which other writes wait for. */
const ANSWERS_A_BATCH = 1_000;

/**
 * Removes the answers that were kept for repetitions and are too old to count.
 * It is bookkeeping, so it leaves no audit row.
 *
 * @returns how many were removed
 */
export async function removeExpiredAnswers(store: Store): Promise<number> {
  let removed = 0;
  for (;;) {
    const batch = await store.write(SYSTEM, "job/answer-expiry", (tx) =>
      removeOldAnswers(tx, ANSWERS_A_BATCH),
    );
    removed += batch;
    if (batch < ANSWERS_A_BATCH) return removed;
  }
}

export const answerExpiryJob: MakeJob = ({ store }) => ({
  name: "answer-expiry",
  everyMs: EVERY_MS,
  run: () => removeExpiredAnswers(store),
});
