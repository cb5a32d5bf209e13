import { type Store, SYSTEM, type WriteOptions, type WriteTransaction } from "../store/store.ts";

/** The maximum pause between two batches. */
const MAX_PAUSE_MS = 50;

/**
 * Writes one batch of a long task, then pauses for as long as the batch took. Other
 * writes of that time get a commit that does not contain the next batch.
 */
export async function writeThenPause<T>(
  store: Store,
  operation: string,
  fn: (tx: WriteTransaction) => Promise<T>,
  options?: WriteOptions,
): Promise<T> {
  const began = performance.now();
  try {
    return await store.write(SYSTEM, operation, fn, options);
  } finally {
    const pauseMs = Math.min(MAX_PAUSE_MS, performance.now() - began);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
