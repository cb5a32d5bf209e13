import { type Store, SYSTEM, type WriteTransaction } from "../store/store.ts";

/** Longest pause between two turns. */
const PAUSE_MS = 50;

/**
 * Writes one turn of a long piece of work and then pauses for as long as the
 * turn took: a write that comes meanwhile has a commit without the next turn in it.
 */
export async function writeTurn<T>(
  store: Store,
  operation: string,
  fn: (tx: WriteTransaction) => Promise<T>,
): Promise<T> {
  const began = performance.now();
  try {
    return await store.write(SYSTEM, operation, fn);
  } finally {
    const pauseMs = Math.min(PAUSE_MS, performance.now() - began);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
