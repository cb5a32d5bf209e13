import type { Workflow } from "#gen/service/v1/workflow_pb.js";
import { type Scope, type Store, SYSTEM, type WriteTransaction } from "../store/store.ts";
import { findDeletingWorkflows, removeWorkflow } from "../store/workflow/workflow.ts";
import { findOpenExecutionIds } from "../store/workflow/workflow-execution.ts";
import {
  PARTS_OF_WORKFLOW,
  removeExecutions,
  removePartsOfWorkflow,
} from "../store/workflow/workflow-removal.ts";
import type { MakeJob } from "./job.ts";
import { writeTurn } from "./turn.ts";

/** Workflows that are pending deletion go this soon after their last execution has ended. */
const EVERY_MS = 1_000;

const OPERATION = "job/workflow-removal";

/** Workflows looked at at a time. */
const WORKFLOWS_A_BATCH = 100;

/**
 * Rows removed in one transaction, which other writes wait for. A piece of a log
 * has up to 64 KiB, an action up to some 20 KiB.
 */
const ROWS_A_TURN = 100;

/** Executions removed in one transaction, each with a record of its own. */
const EXECUTIONS_A_TURN = 10;

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

/** In turns; what an interrupted run has left is removed by the next. */
async function removeEnded(store: Store, scope: Scope, workflow: Workflow): Promise<void> {
  const { id } = workflow;
  for (const part of PARTS_OF_WORKFLOW) {
    await inTurns(store, (tx) => removePartsOfWorkflow(tx, part, id, ROWS_A_TURN));
  }
  await inTurns(store, (tx) => removeExecutions(tx, scope, id, EXECUTIONS_A_TURN));
  await store.write(SYSTEM, OPERATION, (tx) => removeWorkflow(tx, scope, workflow));
}

async function inTurns(store: Store, remove: (tx: WriteTransaction) => Promise<number>): Promise<void> {
  while ((await writeTurn(store, OPERATION, remove)) > 0);
}

export const workflowRemovalJob: MakeJob = ({ store }) => ({
  name: "workflow-removal",
  everyMs: EVERY_MS,
  run: () => removeDeletedWorkflows(store),
});
