import type { Workflow } from "#gen/service/v1/workflow_pb.js";
import { removeLogsOfWorkflow } from "../store/step-log.ts";
import { type Scope, type Store, SYSTEM } from "../store/store.ts";
import { findDeletingWorkflows, removeWorkflow } from "../store/workflow.ts";
import { findOpenExecutionIds } from "../store/workflow-execution.ts";
import { removeExecutions } from "../store/workflow-removal.ts";

/** Workflows looked at at a time. */
const WORKFLOWS_A_BATCH = 100;

/** Actions whose logs are removed in one transaction, which other writes wait for; each may have many MiB. */
const LOGS_A_BATCH = 16;

/** Executions removed in one transaction; each may have a thousand actions. */
const EXECUTIONS_A_BATCH = 10;

/**
 * Removes the workflows that are marked for removal and whose executions have
 * all ended, with those executions.
 *
 * @returns how many were removed
 */
export async function removeDeletedWorkflows(store: Store): Promise<number> {
  let removed = 0;
  let afterId = "";
  for (;;) {
    const batch = await findDeletingWorkflows(store.reader, afterId, WORKFLOWS_A_BATCH);
    for (const { organizationId, workflow } of batch) {
      const scope = { organizationId };
      // A workflow that is marked starts no more, so what has ended by now has ended for good.
      const open = await findOpenExecutionIds(store.reader, scope, { workflowId: workflow.id });
      if (open.length > 0) continue;
      await removeEnded(store, scope, workflow);
      removed += 1;
    }
    afterId = batch.at(-1)?.workflow.id ?? afterId;
    if (batch.length < WORKFLOWS_A_BATCH) return removed;
  }
}

async function removeEnded(store: Store, scope: Scope, workflow: Workflow): Promise<void> {
  await removeLogs(store, workflow.id);
  for (;;) {
    const isGone = await store.write(SYSTEM, "job/workflow-removal", async (tx) => {
      const count = await removeExecutions(tx, scope, workflow.id, EXECUTIONS_A_BATCH);
      if (count === EXECUTIONS_A_BATCH) return false;
      await removeWorkflow(tx, scope, workflow);
      return true;
    });
    if (isGone) return;
  }
}

/** Before the executions, with which they would go in one transaction. */
async function removeLogs(store: Store, workflowId: string): Promise<void> {
  let afterId: string | undefined = "";
  while (afterId !== undefined) {
    const from: string = afterId;
    afterId = await store.write(SYSTEM, "job/workflow-removal", (tx) =>
      removeLogsOfWorkflow(tx, workflowId, from, LOGS_A_BATCH),
    );
  }
}
