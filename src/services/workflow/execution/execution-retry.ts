import type { Subject } from "#gen/service/v1/identity_pb.js";
import type { Workflow, WorkflowExecution, WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import { newAction } from "../../../domain/workflow/execution/workflow-action.ts";
import { executionSearchText, newExecution } from "../../../domain/workflow/execution/workflow-execution.ts";
import {
  requireEnded,
  requireStartable,
  retriableActions,
} from "../../../domain/workflow/execution/workflow-start.ts";
import { findSourceSetters, insertSourceSetters } from "../../../store/identity/source-setter.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { findFailedActions } from "../../../store/workflow/failed-actions.ts";
import { insertActions } from "../../../store/workflow/workflow-action.ts";
import {
  insertExecution,
  type StoredExecution,
  setExpanded,
} from "../../../store/workflow/workflow-execution.ts";
import { advanceExecution } from "./execution-advance.ts";
import { origin, startedExecution, startingExecutor } from "./execution-start.ts";

/**
 * Starts an execution that does the failed actions of another again, from that
 * one's copies. It runs as whom the workflow names now: an executor that was
 * replaced must not act again. The report is done again after them.
 *
 * @returns the execution as it stands at the end of this
 * @throws DomainError PHASE_UNSUITABLE when the other has not ended or has no
 *   failed action; otherwise as startExecution
 */
export async function retryExecution(
  tx: WriteTransaction,
  scope: Scope,
  { execution: retried, variables }: StoredExecution,
  workflow: Workflow,
  creator: Subject,
): Promise<WorkflowExecution> {
  requireStartable(workflow);
  const failed = await failedActions(tx, scope, retried);
  const trigger = retried.spec?.trigger;
  if (!trigger?.context) throw new Error(`the execution ${retried.id} has no context`);
  const executor = await startingExecutor(tx, scope, workflow, trigger.context);
  const execution = newExecution({
    ...origin(tx, workflow),
    creator,
    executor: executor.subject,
    trigger,
    action: retried.spec?.action,
    report: retried.spec?.report,
    warnings: [],
    retriedExecutionId: retried.id,
  });
  const searchText = executionSearchText(execution.id, workflow.metadata?.name ?? "");
  // It is no firing of the trigger, whose overlap policy must not see it.
  await insertExecution(tx, scope, execution, { triggerIndex: null, variables, searchText });
  const setters = await findSourceSetters(tx.db, scope, "workflow_execution", retried);
  await insertSourceSetters(tx, scope, "workflow_execution", execution, setters);
  const actions = failed.map(({ metadata, spec }) =>
    newAction(execution, {
      id: tx.newId(),
      session: tx.newId(),
      name: metadata?.actionName ?? "",
      context: spec?.context,
      report: metadata?.report ?? false,
    }),
  );
  await insertActions(tx, scope, execution.id, actions);
  await setExpanded(tx, scope, execution.id);
  await advanceExecution(tx, scope, execution.id);
  return startedExecution(tx, scope, execution.id);
}

/** The actions to do again; the report only when nothing else is, since it follows the others anyway. */
async function failedActions(
  tx: WriteTransaction,
  scope: Scope,
  retried: WorkflowExecution,
): Promise<readonly WorkflowExecutionAction[]> {
  requireEnded(retried);
  return retriableActions(retried, await findFailedActions(tx.db, scope, retried.id));
}
