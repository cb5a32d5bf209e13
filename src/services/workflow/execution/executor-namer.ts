import { Principal, type Subject } from "#gen/service/v1/identity_pb.js";
import type { WorkflowExecution } from "#gen/service/v1/workflow_pb.js";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { findWorkflow } from "../../../store/workflow/workflow.ts";

/**
 * Returns who made the workflow of an execution, where that runs as a service
 * account; undefined for one that runs as a person, whom nobody else names.
 */
export async function findExecutorNamer(
  tx: WriteTransaction,
  scope: Scope,
  execution: WorkflowExecution,
): Promise<Subject | undefined> {
  const { metadata } = execution;
  if (metadata?.executor?.principal !== Principal.SERVICE_ACCOUNT) return undefined;
  return (await findWorkflow(tx.db, scope, metadata.workflowId))?.metadata?.creator;
}
