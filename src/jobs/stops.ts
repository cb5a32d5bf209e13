import { stopEnvironments } from "../services/access/environment-stops.ts";
import { newTurn, type Turn } from "../services/call/turn.ts";
import { stopExecution, stopExecutions } from "../services/workflow/execution/execution-cancel.ts";
import type { Store, WriteTransaction } from "../store/store.ts";
import { findPendingStops, removePendingStop, type StoredStop } from "../store/workflow/pending-stop.ts";
import type { MakeJob } from "./job.ts";
import { writeTurn } from "./turn.ts";

/** The rest of a large stop begins this soon. */
const EVERY_MS = 1_000;

/** Stops read at a time. */
const STOPS_PER_PAGE = 100;

/**
 * Goes on with stops of executions and environments that were too much for one transaction, in
 * turns of a bounded number of rows, until nothing is left of them. Each stop gets
 * one turn a round, so that a large one holds up no small one, and one that fails
 * gets no other in this run. After a restart it goes on where it was.
 *
 * @param draining ends it between two turns
 * @returns how many turns there were
 * @throws AggregateError of what went wrong, after the others were done
 */
export async function continueStops(store: Store, draining?: AbortSignal): Promise<number> {
  let turns = 0;
  const failures = new Map<string, unknown>();
  const keyOf = ({ target, targetId, mode }: StoredStop) => `${target} ${targetId} ${mode}`;
  let turnsBefore: number;
  do {
    turnsBefore = turns;
    for await (const stop of pendingStops(store)) {
      if (draining?.aborted) break;
      if (failures.has(keyOf(stop))) continue;
      turns += 1;
      const turn = writeTurn(store, "job/stops", (tx) => takeTurn(tx, stop));
      await turn.catch((error: unknown) => failures.set(keyOf(stop), error));
    }
  } while (turns > turnsBefore);
  if (failures.size > 0)
    throw new AggregateError([...failures.values()], "executions or environments could not be stopped");
  return turns;
}

/** Reads every stop once, also past those that stay. */
async function* pendingStops({ reader }: Store): AsyncGenerator<StoredStop> {
  let page: StoredStop[] = [];
  do {
    page = await findPendingStops(reader, STOPS_PER_PAGE, page.at(-1));
    yield* page;
  } while (page.length === STOPS_PER_PAGE);
}

async function takeTurn(tx: WriteTransaction, stop: StoredStop): Promise<void> {
  if (await goOn(tx, stop, newTurn())) await removePendingStop(tx, stop);
}

/** @returns whether nothing is left to do */
async function goOn(tx: WriteTransaction, stop: StoredStop, turn: Turn): Promise<boolean> {
  const { organizationId, mode, target, targetId, upTo } = stop;
  const scope = { organizationId };
  switch (target) {
    case "execution":
      return stopExecution(tx, scope, targetId, mode, turn);
    case "workflow":
      return stopExecutions(tx, scope, { workflowId: targetId }, mode, turn, upTo);
    case "executor":
      return stopExecutions(tx, scope, { executorId: targetId }, mode, turn, upTo);
    case "creator":
      return stopEnvironments(tx, scope, targetId, turn, upTo);
  }
}

export const stopsJob: MakeJob = ({ store, draining }) => ({
  name: "stops",
  everyMs: EVERY_MS,
  run: () => continueStops(store, draining),
});
