import type { Subject } from "#gen/service/v1/identity_pb.js";
import type { Workflow, WorkflowExecution, WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import { newAction } from "../../../domain/workflow/execution/workflow-action.ts";
import { executionSearchText, newExecution } from "../../../domain/workflow/execution/workflow-execution.ts";
import {
  requireExecutionEnded,
  requireStartable,
  retriableActions,
} from "../../../domain/workflow/execution/workflow-start.ts";
import { requireStepsAllowed } from "../../../domain/workflow/workflow-policy.ts";
import { findSourceSetters, insertSourceSetters } from "../../../store/identity/source-setter.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { findFailedActions } from "../../../store/workflow/failed-actions.ts";
import { insertActions } from "../../../store/workflow/workflow-action.ts";
import {
  insertExecution,
  type StoredExecution,
  setExpanded,
} from "../../../store/workflow/workflow-execution.ts";
import { advanceExecution } from "./execution-advance.ts";
import { getStartableExecutor, newExecutionIds, readInsertedExecution } from "./execution-start.ts";

/**
 * Starts an execution that retries the failed actions of another, with the other's copy of the workflow, and then its
 * report. It runs as the workflow's current executor: a replaced executor must not act again.
 *
 * @returns the new execution
 * @throws DomainError PHASE_UNSUITABLE when the other has not ended or has no failed action; otherwise as
 * startExecution
 */
export async function retryExecution(
  tx: WriteTransaction,
  scope: Scope,
  { execution: retried, variables }: StoredExecution,
  workflow: Workflow,
  creator: Subject,
): Promise<WorkflowExecution> {
  requireStartable(workflow);
  const failed = await findRetriableActions(tx, scope, retried);
  const trigger = retried.spec?.trigger;
  if (!trigger?.context) throw new Error(`the execution ${retried.id} has no context`);
  const policies = await findPolicies(tx.db, scope);
  const executor = await getStartableExecutor(tx, scope, policies, workflow, trigger.context);
  requireStepsAllowed(policies, retried.spec?.action);
  const execution = newExecution({
    ...newExecutionIds(tx, workflow),
    creator,
    executor: executor.subject,
    trigger,
    action: retried.spec?.action,
    report: retried.spec?.report,
    warnings: [],
    retriedExecutionId: retried.id,
  });
  const searchText = executionSearchText(execution.id, workflow.metadata?.name ?? "");
  // Without a trigger index, because the overlap policy of the trigger must not count it.
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
  return readInsertedExecution(tx, scope, execution.id);
}

/** Returns the actions to retry. Includes the report only when no other action failed, since it runs anyway. */
async function findRetriableActions(
  tx: WriteTransaction,
  scope: Scope,
  retried: WorkflowExecution,
): Promise<readonly WorkflowExecutionAction[]> {
  requireExecutionEnded(retried);
  return retriableActions(retried, await findFailedActions(tx.db, scope, retried.id));
}
