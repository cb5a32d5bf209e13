import {
  type Scope,
  type Store,
  SYSTEM,
  type WriteOptions,
  type WriteTransaction,
  within,
} from "../store/store.ts";

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

/**
 * Writes for each organization in which a job has found something to do, in a transaction of its own that locks only
 * that organization. What was found may have changed since, so `fn` finds it again.
 *
 * @param found one or more entries for each organization
 * @returns the sum of what the writes return
 * @throws AggregateError of the failures, after all others are done
 */
export async function writeInEach(
  store: Store,
  operation: string,
  found: readonly Scope[],
  fn: (tx: WriteTransaction, scope: Scope) => Promise<number>,
): Promise<number> {
  const organizationIds = new Set(found.map(({ organizationId }) => organizationId));
  const written = await Promise.allSettled(
    [...organizationIds].map((organizationId) => {
      const scope = { organizationId };
      return store.write(SYSTEM, operation, (tx) => fn(tx, scope), within(scope));
    }),
  );
  const failures = written.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
  if (failures.length > 0) throw new AggregateError(failures, `${operation} failed in some organizations`);
  return written.reduce((sum, each) => sum + (each.status === "fulfilled" ? each.value : 0), 0);
}

/** Returns the store as jobs use it: their writes fail once another process runs the jobs, and no call waits for their reads. */
export const asLeader = (store: Store): Store => ({
  ...store,
  reader: store.longReader,
  write: (actor, operation, fn, options) => store.write(actor, operation, fn, { ...options, asLeader: true }),
  touchAll: (notes, options) => store.touchAll(notes, { ...options, asLeader: true }),
});
