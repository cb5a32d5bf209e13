import type { Keep } from "../../domain/policy/retention.ts";
import {
  type ExecutionKind,
  LOOKED_AT,
  type Past,
  pastExecutions,
  tableOf,
} from "../../services/access/retention/past.ts";
import { deleteMadeEnvironment } from "../../services/agent/agent-stop.ts";
import type { EndedTable } from "../../store/access/retention/ended.ts";
import { removeParts } from "../../store/access/retention/parts.ts";
import {
  findHolders,
  findRemovableExecutions,
  findRemovableRuns,
  findRetries,
} from "../../store/access/retention/removable.ts";
import {
  findTakenAway,
  removeApprovalsOfTaken,
  removeHead,
  takeExecutionsAway,
  takeRunsAway,
} from "../../store/access/retention/removal.ts";
import { removeUnownedChanges } from "../../store/environment/environment-changes.ts";
import { removeUnownedConnections } from "../../store/environment/environment-connection.ts";
import { type Scope, type Store, type WriteTransaction, within } from "../../store/store.ts";
import { removeUnownedPullRequests } from "../../store/workflow/pull-request/pull-request-removal.ts";
import { writeThenPause } from "../job-writes.ts";
import { BatchSize } from "./batch-size.ts";

const OPERATION = "job/retention";

/** Number of executions that are taken away per transaction, and of their actions, each of which is looked at. */
const TAKEN_PER_BATCH = 20;
const ACTIONS_PER_BATCH = 500;

/**
 * Rows and bytes of parts removed per transaction at most: as many as go within the time that others may wait. A row has
 * up to some megabytes, and is never divided.
 */
const ROWS_PER_BATCH = 100;
const BYTES_PER_BATCH = 512 * 1024;

/** Number of approvals removed per transaction, each with its own audit record. */
const APPROVALS_PER_BATCH = 10;

/**
 * Removes the executions that an organization keeps no longer and that nothing needs. First they are taken away from
 * all readers, with a record of each; then their parts go in portions, so that no other write waits long. What a run
 * that was killed or drained has left goes with the next.
 *
 * @param now milliseconds since 1970 UTC
 * @param draining ends the run between two writes
 * @returns the number of executions removed
 */
export async function removePastExecutions(
  store: Store,
  scope: Scope,
  kind: ExecutionKind,
  keep: Keep,
  now: number,
  draining?: AbortSignal,
): Promise<number> {
  await removeTaken(store, scope, kind, draining);
  let removed = 0;
  // What others go on with or retry can go only after them, which are younger.
  for (let before = -1; before < removed; ) {
    before = removed;
    for await (const { ids, reason } of pastExecutions(store, scope, kind, keep, now)) {
      if (draining?.aborted) return removed;
      const taken = await takeAway(store, scope, kind, { ids, reason }, draining);
      if (taken > 0) await removeTaken(store, scope, kind, draining);
      removed += taken;
    }
  }
  return removed;
}

async function takeAway(
  store: Store,
  scope: Scope,
  kind: ExecutionKind,
  { ids, reason }: Past,
  draining: AbortSignal | undefined,
): Promise<number> {
  let taken = 0;
  const take = kind === "executions" ? takeExecutions : takeRuns;
  for (const batch of await batchesOf(store, scope, kind, ids)) {
    if (draining?.aborted) break;
    taken += await writeThenPause(store, OPERATION, (tx) => take(tx, scope, batch, reason), within(scope));
  }
  return taken;
}

/** Returns what can be removed, in the batches in which it is looked at again, under the lock. */
async function batchesOf(
  store: Store,
  scope: Scope,
  kind: ExecutionKind,
  ids: readonly string[],
): Promise<string[][]> {
  if (kind === "agentExecutions") {
    const free = await findRemovableRuns(store.reader, scope, ids);
    return inBatches(await withoutHeld(store.reader, scope, free), () => 0);
  }
  const free = await withoutRetried(
    store.reader,
    scope,
    await findRemovableExecutions(store.reader, scope, ids),
  );
  const actions = new Map(free.map((each) => [each.id, each.actions]));
  return inBatches([...actions.keys()], (id) => actions.get(id) ?? 0);
}

function inBatches(ids: readonly string[], actionsOf: (id: string) => number): string[][] {
  const batches: string[][] = [];
  let actions = 0;
  for (const id of ids) {
    const last = batches.at(-1);
    actions += actionsOf(id);
    if (last && last.length < TAKEN_PER_BATCH && actions <= ACTIONS_PER_BATCH) last.push(id);
    else {
      batches.push([id]);
      actions = actionsOf(id);
    }
  }
  return batches;
}

async function takeExecutions(
  tx: WriteTransaction,
  scope: Scope,
  ids: readonly string[],
  reason: string,
): Promise<number> {
  const free = await withoutRetried(tx.db, scope, await findRemovableExecutions(tx.db, scope, ids));
  await takeExecutionsAway(tx, scope, free, reason);
  return free.length;
}

async function takeRuns(
  tx: WriteTransaction,
  scope: Scope,
  ids: readonly string[],
  reason: string,
): Promise<number> {
  const free = await withoutHeld(tx.db, scope, await findRemovableRuns(tx.db, scope, ids));
  const taken = await takeRunsAway(tx, scope, free, reason);
  for (const { environmentId, createdEnvironment } of taken) {
    if (createdEnvironment) await deleteMadeEnvironment(tx, scope, environmentId);
  }
  return taken.length;
}

async function withoutHeld(
  db: WriteTransaction["db"],
  scope: Scope,
  ids: readonly string[],
): Promise<string[]> {
  const held = new Set((await findHolders(db, scope, ids)).map(({ id }) => id));
  return ids.filter((id) => !held.has(id));
}

async function withoutRetried<T extends { readonly id: string }>(
  db: WriteTransaction["db"],
  scope: Scope,
  executions: readonly T[],
): Promise<T[]> {
  const retries = await findRetries(
    db,
    scope,
    executions.map(({ id }) => id),
  );
  const held = new Set(retries.map(({ id }) => id));
  return executions.filter(({ id }) => !held.has(id));
}

/** Removes what was taken away, in portions. */
async function removeTaken(
  store: Store,
  scope: Scope,
  kind: ExecutionKind,
  draining: AbortSignal | undefined,
): Promise<void> {
  const table = tableOf(kind);
  const repeat = async (size: BatchSize, remove: (tx: WriteTransaction) => Promise<number>) => {
    const measured = (tx: WriteTransaction) => size.measure(() => remove(tx));
    while (!draining?.aborted && (await writeThenPause(store, OPERATION, measured, within(scope))) > 0);
  };
  const [approvals, parts] = [new BatchSize(), new BatchSize()];
  for (;;) {
    const taken = await findTakenAway(store.reader, scope, table, LOOKED_AT);
    for (const id of taken) {
      // Before the actions, with which they would go without a record.
      await repeat(approvals, (tx) =>
        removeApprovalsOfTaken(tx, scope, table, id, approvals.of(APPROVALS_PER_BATCH)),
      );
      await repeat(parts, (tx) =>
        removeParts(tx, scope, table, id, parts.of(ROWS_PER_BATCH), parts.of(BYTES_PER_BATCH)),
      );
      // With parts that are left, the row would take them all in one write.
      if (draining?.aborted) return;
      await writeThenPause(store, OPERATION, (tx) => removeWhole(tx, scope, table, id), within(scope));
    }
    if (taken.length < LOOKED_AT) return;
  }
}

async function removeWhole(tx: WriteTransaction, scope: Scope, table: EndedTable, id: string): Promise<void> {
  const environmentId = await removeHead(tx, scope, table, id);
  if (environmentId === undefined) return;
  await removeUnownedChanges(tx, scope, environmentId);
  await removeUnownedConnections(tx, scope, environmentId);
  await removeUnownedPullRequests(tx, scope, environmentId);
}
