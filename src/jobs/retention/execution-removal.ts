import type { Keep } from "../../domain/policy/retention.ts";
import {
  EXECUTIONS_PER_BATCH,
  type ExecutionKind,
  type Past,
  pastExecutions,
  tableOf,
} from "../../services/access/retention/past.ts";
import { deleteCreatedEnvironment } from "../../services/agent/agent-stop.ts";
import type { EndedTable } from "../../store/access/retention/ended.ts";
import { findParts, removeParts } from "../../store/access/retention/parts.ts";
import {
  findHolders,
  findRemovableExecutions,
  findRemovableRuns,
  findRetries,
} from "../../store/access/retention/removable.ts";
import {
  findHidden,
  hasApprovalsOfTaken,
  hideAgentExecutions,
  hideExecutions,
  removeApprovalsOfTaken,
  removeHead,
} from "../../store/access/retention/removal.ts";
import { removeUnownedRecords } from "../../store/environment/unowned-records.ts";
import { type Scope, type Store, type WriteTransaction, within } from "../../store/store.ts";
import { writeThenPause } from "../job-writes.ts";
import { BatchSizes, portionOf } from "./batch-size.ts";

const OPERATION = "job/retention";

/** Maximum number of executions marked as removed per transaction, and of their actions, each of which is checked. */
const TAKEN_PER_BATCH = 20;
const ACTIONS_PER_BATCH = 500;

/** Number of rows of parts that are read together. */
const PARTS_READ = 400;

/**
 * Maximum rows and bytes of parts removed per transaction. A row is never divided: one of 8 MiB was removed within 10
 * ms.
 */
const ROWS_PER_BATCH = 100;
const BYTES_PER_BATCH = 512 * 1024;

/** Maximum number of approvals removed per transaction, each with its own audit record. */
const APPROVALS_PER_BATCH = 10;

/** Maximum number of executions without parts whose own rows are removed per transaction. */
const HEADS_PER_BATCH = 20;

/**
 * Removes the executions that an organization no longer keeps and that nothing needs. They are first hidden from all
 * readers, with a record of each. Then their parts are removed in portions, so that no other write waits long. The
 * next run removes what a killed or drained run has left.
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
  const removal = { store, scope, kind, draining, sizes: new BatchSizes() };
  await removeTaken(removal);
  let removed = 0;
  // An execution that others continue or retry can only be removed after those, which are newer.
  for (let before = -1; before < removed; ) {
    before = removed;
    for await (const past of pastExecutions(store, scope, kind, keep, now)) {
      if (draining?.aborted) return removed;
      const taken = await takeAway(removal, past);
      if (taken > 0) await removeTaken(removal);
      removed += taken;
    }
  }
  return removed;
}

/** What is removed, and how fast each part of it is removed. */
interface ExecutionRemoval {
  readonly store: Store;
  readonly scope: Scope;
  readonly kind: ExecutionKind;
  readonly draining: AbortSignal | undefined;
  readonly sizes: BatchSizes;
}

async function takeAway(
  { store, scope, kind, draining, sizes }: ExecutionRemoval,
  { ids, reason }: Past,
): Promise<number> {
  const take = kind === "executions" ? takeExecutions : takeRuns;
  const size = sizes.of("taken");
  let taken = 0;
  let free = await findFree(store, scope, kind, ids);
  while (free.length > 0 && !draining?.aborted) {
    const count = portionOf(
      free.map(({ actions }) => actions),
      { count: size.of(TAKEN_PER_BATCH), sum: size.of(ACTIONS_PER_BATCH) },
    );
    const batch = free.slice(0, count).map(({ id }) => id);
    free = free.slice(count);
    const run = (tx: WriteTransaction) => size.measure(() => take(tx, scope, batch, reason));
    taken += await writeThenPause(store, OPERATION, run, within(scope));
  }
  return taken;
}

/** Returns what can be removed, with the number of its actions; it is checked again under the lock. */
async function findFree(
  { reader }: Store,
  scope: Scope,
  kind: ExecutionKind,
  ids: readonly string[],
): Promise<{ readonly id: string; readonly actions: number }[]> {
  if (kind === "executions")
    return withoutRetried(reader, scope, await findRemovableExecutions(reader, scope, ids));
  const free = await withoutHeld(reader, scope, await findRemovableRuns(reader, scope, ids));
  return free.map((id) => ({ id, actions: 0 }));
}

async function takeExecutions(
  tx: WriteTransaction,
  scope: Scope,
  ids: readonly string[],
  reason: string,
): Promise<number> {
  const free = await withoutRetried(tx.db, scope, await findRemovableExecutions(tx.db, scope, ids));
  await hideExecutions(tx, scope, free, reason);
  return free.length;
}

async function takeRuns(
  tx: WriteTransaction,
  scope: Scope,
  ids: readonly string[],
  reason: string,
): Promise<number> {
  const free = await withoutHeld(tx.db, scope, await findRemovableRuns(tx.db, scope, ids));
  const taken = await hideAgentExecutions(tx, scope, free, reason);
  for (const { environmentId, createdEnvironment } of taken) {
    if (createdEnvironment) await deleteCreatedEnvironment(tx, scope, environmentId);
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

/** Removes the parts and rows of hidden executions, in portions. */
async function removeTaken(removal: ExecutionRemoval): Promise<void> {
  const { store, scope, kind, draining } = removal;
  for (;;) {
    const taken = await findHidden(store.reader, scope, tableOf(kind), EXECUTIONS_PER_BATCH);
    for (const id of taken) {
      // Before the actions, whose removal would delete the approvals without a record.
      await removeApprovals(removal, id);
      await removePartsOf(removal, id);
      // With parts left, removing the rows would delete all of the parts in one write.
      if (draining?.aborted) return;
      // The last execution of an environment also removes, in portions, what was reported of the environment.
      if (kind === "agentExecutions") await removeHeads(removal, [id]);
    }
    if (kind === "executions") await removeHeads(removal, taken);
    if (taken.length < EXECUTIONS_PER_BATCH || draining?.aborted) return;
  }
}

async function removeApprovals(
  { store, scope, kind, draining, sizes }: ExecutionRemoval,
  id: string,
): Promise<void> {
  const [table, size] = [tableOf(kind), sizes.of("approval")];
  while (!draining?.aborted && (await hasApprovalsOfTaken(store.reader, scope, table, id))) {
    const remove = (tx: WriteTransaction) =>
      size.measure(() => removeApprovalsOfTaken(tx, scope, table, id, size.of(APPROVALS_PER_BATCH)));
    await writeThenPause(store, OPERATION, remove, within(scope));
  }
}

async function removePartsOf(
  { store, scope, kind, draining, sizes }: ExecutionRemoval,
  id: string,
): Promise<void> {
  for (;;) {
    const found = await findParts(store.reader, scope, tableOf(kind), id, PARTS_READ);
    if (!found) return;
    const size = sizes.of(found.table);
    for (let rows = found.rows; rows.length > 0; ) {
      if (draining?.aborted) return;
      const count = portionOf(
        rows.map(({ bytes }) => bytes),
        { count: size.of(ROWS_PER_BATCH), sum: size.of(BYTES_PER_BATCH) },
      );
      const portion = rows.slice(0, count);
      rows = rows.slice(count);
      const remove = (tx: WriteTransaction) => size.measure(() => removeParts(tx, found, portion));
      await writeThenPause(store, OPERATION, remove, within(scope));
    }
  }
}

async function removeHeads(
  { store, scope, kind, draining, sizes }: ExecutionRemoval,
  taken: readonly string[],
): Promise<void> {
  const size = sizes.of("head");
  for (let next = 0; next < taken.length && !draining?.aborted; ) {
    const ids = taken.slice(next, next + size.of(HEADS_PER_BATCH));
    next += ids.length;
    const remove = (tx: WriteTransaction) =>
      size.measure(async () => {
        for (const id of ids) await removeWhole(tx, scope, tableOf(kind), id);
      });
    await writeThenPause(store, OPERATION, remove, within(scope));
  }
}

async function removeWhole(tx: WriteTransaction, scope: Scope, table: EndedTable, id: string): Promise<void> {
  const environmentId = await removeHead(tx, scope, table, id);
  if (environmentId === undefined) return;
  await removeUnownedRecords(tx, scope, environmentId);
}
