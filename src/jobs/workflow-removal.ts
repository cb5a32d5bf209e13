import { removeApprovalsOfWorkflow } from "../services/approval/approval-end.ts";
import { type Scope, type Store, SYSTEM, type WriteTransaction, within } from "../store/store.ts";
import { type FoundWorkflow, findDeletingWorkflows, removeWorkflow } from "../store/workflow/workflow.ts";
import { findOpenExecutionIds } from "../store/workflow/workflow-execution.ts";
import {
  PARTS_OF_WORKFLOW,
  removeExecutions,
  removePartsOfWorkflow,
} from "../store/workflow/workflow-removal.ts";
import type { JobFactory } from "./job.ts";
import { writeThenPause } from "./job-writes.ts";

/** A workflow that is pending deletion is removed within this time after its last execution has ended. */
const EVERY_MS = 1_000;

const OPERATION = "job/workflow-removal";

/** Number of workflows read at a time. */
const WORKFLOWS_PER_BATCH = 100;

/**
 * Number of rows removed per transaction, which other writes wait for. A log chunk
 * has up to 64 KiB, an action up to about 20 KiB.
 */
const ROWS_PER_BATCH = 100;

/** Number of executions removed per transaction, each with its own audit record. */
const EXECUTIONS_PER_BATCH = 10;

/**
 * Removes the workflows that are marked for removal and whose executions have all
 * ended, together with those executions.
 *
 * @returns the number of workflows removed
 */
export async function removeDeletedWorkflows(store: Store): Promise<number> {
  let removed = 0;
  let afterId = "";
  for (;;) {
    const batch = await findDeletingWorkflows(store.reader, afterId, WORKFLOWS_PER_BATCH);
    for (const { organizationId, workflow } of batch) {
      const scope = { organizationId };
      // A marked workflow starts no more executions, so none can be added after this check.
      const open = await findOpenExecutionIds(store.reader, scope, { workflowId: workflow.id });
      if (open.length > 0) continue;
      await removeEnded(store, scope, workflow);
      removed += 1;
    }
    afterId = batch.at(-1)?.workflow.id ?? afterId;
    if (batch.length < WORKFLOWS_PER_BATCH) return removed;
  }
}

/** Removes a workflow in batches. The next run removes the rest after an interruption. */
async function removeEnded(store: Store, scope: Scope, workflow: FoundWorkflow): Promise<void> {
  const { id } = workflow;
  // Before the actions, whose removal would delete the approvals without a record.
  await removeInBatches(store, scope, (tx) => removeApprovalsOfWorkflow(tx, scope, id, ROWS_PER_BATCH));
  for (const part of PARTS_OF_WORKFLOW) {
    await removeInBatches(store, scope, (tx) => removePartsOfWorkflow(tx, part, id, ROWS_PER_BATCH));
  }
  await removeInBatches(store, scope, (tx) => removeExecutions(tx, scope, id, EXECUTIONS_PER_BATCH));
  await store.write(SYSTEM, OPERATION, (tx) => removeWorkflow(tx, scope, workflow), within(scope));
}

async function removeInBatches(
  store: Store,
  scope: Scope,
  remove: (tx: WriteTransaction) => Promise<number>,
): Promise<void> {
  while ((await writeThenPause(store, OPERATION, remove, within(scope))) > 0);
}

/** Removes workflows that are marked for removal. */
export const workflowRemovalJob: JobFactory = ({ store }) => ({
  name: "workflow-removal",
  everyMs: EVERY_MS,
  run: () => removeDeletedWorkflows(store),
});
