import { stopEnvironments } from "../services/access/environment-stops.ts";
import { newRowBudget, type RowBudget } from "../services/call/row-budget.ts";
import { stopExecution, stopExecutions } from "../services/workflow/execution/execution-cancel.ts";
import { type Store, type WriteTransaction, within } from "../store/store.ts";
import { findPendingStops, removePendingStop, type StoredStop } from "../store/workflow/pending-stop.ts";
import type { JobFactory } from "./job.ts";
import { writeThenPause } from "./job-writes.ts";

/** The delay before the rest of a large stop begins, at most. */
const EVERY_MS = 1_000;

/** Number of stops read at a time. */
const STOPS_PER_PAGE = 100;

/**
 * Completes the stops of executions and environments that were too large for one
 * transaction, in batches of a bounded number of rows. Each stop gets one batch per
 * round, so that a large one does not delay a small one. A stop that fails is not
 * retried in the same run. After a restart, the stops continue where they were.
 *
 * @param draining ends the run between two batches
 * @returns the number of batches written
 * @throws AggregateError of the failures, after the other stops are done
 */
export async function continueStops(store: Store, draining?: AbortSignal): Promise<number> {
  let batches = 0;
  const failures = new Map<string, unknown>();
  const keyOf = ({ target, targetId, mode }: StoredStop) => `${target} ${targetId} ${mode}`;
  let batchesBefore: number;
  do {
    batchesBefore = batches;
    for await (const stop of pendingStops(store)) {
      if (draining?.aborted) break;
      if (failures.has(keyOf(stop))) continue;
      batches += 1;
      const batch = writeThenPause(store, "job/stops", (tx) => writeStopBatch(tx, stop), within(stop));
      await batch.catch((error: unknown) => failures.set(keyOf(stop), error));
    }
  } while (batches > batchesBefore);
  if (failures.size > 0)
    throw new AggregateError([...failures.values()], "executions or environments could not be stopped");
  return batches;
}

/** Reads every stop once, including those that remain. */
async function* pendingStops({ reader }: Store): AsyncGenerator<StoredStop> {
  let page: StoredStop[] = [];
  do {
    page = await findPendingStops(reader, STOPS_PER_PAGE, page.at(-1));
    yield* page;
  } while (page.length === STOPS_PER_PAGE);
}

async function writeStopBatch(tx: WriteTransaction, stop: StoredStop): Promise<void> {
  if (await continueStop(tx, stop, newRowBudget())) await removePendingStop(tx, stop);
}

/** @returns whether nothing is left to do */
async function continueStop(tx: WriteTransaction, stop: StoredStop, budget: RowBudget): Promise<boolean> {
  const { organizationId, mode, target, targetId, upTo } = stop;
  const scope = { organizationId };
  switch (target) {
    case "execution":
      return stopExecution(tx, scope, targetId, mode, budget);
    case "workflow":
      return stopExecutions(tx, scope, { workflowId: targetId }, mode, budget, upTo);
    case "executor":
      return stopExecutions(tx, scope, { executorId: targetId }, mode, budget, upTo);
    case "creator":
      return stopEnvironments(tx, scope, targetId, budget, upTo);
  }
}

/** Completes large stops. */
export const stopsJob: JobFactory = ({ store, draining }) => ({
  name: "stops",
  everyMs: EVERY_MS,
  run: () => continueStops(store, draining),
});
