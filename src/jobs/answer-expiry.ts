import { removeOldAnswers } from "../store/record/idempotency.ts";
import { type Store, SYSTEM } from "../store/store.ts";

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
