import { unindexed } from "../expressions.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Handle, Reader, Scope, WriteTransaction } from "../store.ts";
import { type AgentExecutionKey, approvalOfRow, changeOf, type FoundApproval, recordOf } from "./approval.ts";
import type { ApprovalTable } from "./approval-schema.ts";

// With the organization's index the engine would read all approvals of the organization.
const selectOfExecution = prepared<AgentExecutionKey, ApprovalTable>(
  (db, { organizationId, agentExecutionId }) =>
    db
      .selectFrom("approval")
      .selectAll()
      .where("agent_execution_id", "=", agentExecutionId)
      .where(unindexed("approval.organization_id"), "=", organizationId)
      .orderBy("id"),
);

/** Removes the approvals of an agent execution permanently. */
export async function removeApprovalsOf(
  tx: WriteTransaction,
  { organizationId }: Scope,
  agentExecutionId: string,
): Promise<void> {
  const rows = await selectOfExecution(tx.db, { organizationId, agentExecutionId });
  for (const row of rows) await removeApproval(tx, { organizationId }, approvalOfRow(row));
}

/** Returns up to `limit` approvals that a workflow's executions and the steps of their actions have requested. */
export async function findApprovalsOfWorkflow(
  db: Reader,
  { organizationId }: Scope,
  workflowId: Handle<"workflow">,
  limit: number,
): Promise<FoundApproval[]> {
  const rows = await builderOf(db)
    .selectFrom("workflow_action")
    .innerJoin("approval", "approval.action_id", "workflow_action.id")
    .select("approval.body")
    .where("workflow_action.workflow_id", "=", workflowId)
    .where(unindexed("approval.organization_id"), "=", organizationId)
    .limit(limit)
    .execute();
  if (rows.length === limit) return rows.map(approvalOfRow);
  const whole = await builderOf(db)
    .selectFrom("workflow_execution")
    .innerJoin("approval", "approval.workflow_execution_id", "workflow_execution.id")
    .select("approval.body")
    .where("workflow_execution.workflow_id", "=", workflowId)
    .where("approval.action_id", "is", null)
    .where("approval.agent_execution_id", "is", null)
    .where(unindexed("approval.organization_id"), "=", organizationId)
    .limit(limit - rows.length)
    .execute();
  return [...rows, ...whole].map(approvalOfRow);
}

/** Removes an approval permanently. */
export async function removeApproval(
  tx: WriteTransaction,
  scope: Scope,
  approval: FoundApproval,
): Promise<void> {
  await builderOf(tx.db)
    .deleteFrom("approval")
    .where("id", "=", approval.id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  tx.record({ ...changeOf(scope, approval), kind: "deleted", before: recordOf(approval) });
}
