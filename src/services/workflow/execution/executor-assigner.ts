import { Principal, type Subject } from "#gen/service/v1/identity_pb.js";
import type { WorkflowExecution } from "#gen/service/v1/workflow_pb.js";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { findWorkflow } from "../../../store/workflow/workflow.ts";

/**
 * Returns the subject that made a service account the executor: the creator of the
 * execution's workflow. Undefined for an execution that runs as a person, since people
 * can only name themselves.
 */
export async function findExecutorAssigner(
  tx: WriteTransaction,
  scope: Scope,
  execution: WorkflowExecution,
): Promise<Subject | undefined> {
  const { metadata } = execution;
  if (metadata?.executor?.principal !== Principal.SERVICE_ACCOUNT) return undefined;
  return (await findWorkflow(tx.db, scope, metadata.workflowId))?.metadata?.creator;
}
