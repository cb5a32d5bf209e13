import { agentExecutionFacts, storedOfRow } from "../../agent/agent-execution.ts";
import { approvalOfRow } from "../../approval/approval.ts";
import { removeApproval } from "../../approval/approval-removal.ts";
import { unindexed } from "../../expressions.ts";
import { removeRoleAssignmentsOn } from "../../identity/role-assignment.ts";
import { builderOf } from "../../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../../store.ts";
import type { EndedTable } from "./ended.ts";
import type { RemovableExecution } from "./removable.ts";

/**
 * Hides executions of workflows from all readers, and records it. Their parts are removed by removeParts, then the
 * rows by removeHeads. The record contains only what it had while they ran: retention must remove their content.
 */
export async function hideExecutions(
  tx: WriteTransaction,
  { organizationId }: Scope,
  executions: readonly RemovableExecution[],
  reason: string,
): Promise<void> {
  const ids = executions.map(({ id }) => id);
  await setRemoved(tx, "workflow_execution", ids);
  for (const { id, workflowId, startedAt, finishedAt } of executions) {
    const times = { startedAt: asText(startedAt), finishedAt: asText(finishedAt) };
    tx.record({
      organizationId,
      type: "workflow_execution",
      id,
      kind: "deleted",
      before: JSON.stringify({ id, metadata: { workflowId, ...times } }),
      reason,
    });
  }
}

/** The environment of a removed agent execution. */
export interface HiddenAgentExecution {
  readonly id: string;
  readonly environmentId: string;
  /** True when the environment was created for it, and is removed with it. */
  readonly createdEnvironment: boolean;
}

/** Hides agent executions from all readers, and records it, like {@link hideExecutions}. */
export async function hideAgentExecutions(
  tx: WriteTransaction,
  { organizationId }: Scope,
  ids: readonly string[],
  reason: string,
): Promise<HiddenAgentExecution[]> {
  if (ids.length === 0) return [];
  await setRemoved(tx, "agent_execution", ids);
  const rows = await builderOf(tx.db)
    .selectFrom("agent_execution")
    .selectAll()
    .where("id", "in", ids)
    .where("organization_id", "=", organizationId)
    .orderBy("id")
    .execute();
  return rows.map((row) => {
    const { execution, environmentId, createdEnvironment } = storedOfRow(row);
    const { id, metadata } = execution;
    if (metadata?.parentExecutionId) tx.touch(metadata.parentExecutionId);
    const times = { createdAt: asText(row.created_at), stoppedAt: asText(row.stopped_at ?? 0) };
    const before = JSON.stringify({ id, metadata: { creator: { id: row.creator_id }, ...times } });
    const facts = agentExecutionFacts(execution);
    tx.record({ organizationId, type: "agent_execution", id, kind: "deleted", before, reason, facts });
    return { id, environmentId, createdEnvironment };
  });
}

const asText = (ms: number) => new Date(ms).toISOString();

async function setRemoved(tx: WriteTransaction, table: EndedTable, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await builderOf(tx.db).updateTable(table).set({ removed_at: tx.now }).where("id", "in", ids).execute();
}

/** Returns the ids of up to `limit` hidden executions that still have rows. */
export async function findHidden(
  db: Reader,
  { organizationId }: Scope,
  table: EndedTable,
  limit: number,
): Promise<string[]> {
  const rows = await builderOf(db)
    .selectFrom(table)
    .select("id")
    .where("organization_id", "=", organizationId)
    .where("removed_at", "is not", null)
    .orderBy("id")
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}

/**
 * Removes up to `limit` approvals that hidden executions asked for, each with its record.
 * @returns the number of removed approvals
 */
export async function removeApprovalsOfTaken(
  tx: WriteTransaction,
  scope: Scope,
  table: EndedTable,
  id: string,
  limit: number,
): Promise<number> {
  const found = await findApprovals(tx.db, scope, table, id, limit);
  for (const row of found) await removeApproval(tx, scope, approvalOfRow(row));
  return found.length;
}

/** Returns whether anything is left for {@link removeApprovalsOfTaken}. */
export async function hasApprovalsOfTaken(
  db: Reader,
  scope: Scope,
  table: EndedTable,
  id: string,
): Promise<boolean> {
  return (await findApprovals(db, scope, table, id, 1)).length > 0;
}

async function findApprovals(
  db: Reader,
  scope: Scope,
  table: EndedTable,
  id: string,
  limit: number,
): Promise<{ body: string }[]> {
  const rows = await findApprovalsOfParts(db, scope, table, id, limit);
  // An approval requested before the execution began names no action.
  return rows.length === 0 && table === "workflow_execution"
    ? findApprovalsOfWhole(db, scope, id, limit)
    : rows;
}

function findApprovalsOfWhole(
  db: Reader,
  { organizationId }: Scope,
  executionId: string,
  limit: number,
): Promise<{ body: string }[]> {
  return builderOf(db)
    .selectFrom("approval")
    .select("body")
    .where("workflow_execution_id", "=", executionId)
    .where("action_id", "is", null)
    .where("agent_execution_id", "is", null)
    .where(unindexed("approval.organization_id"), "=", organizationId)
    .limit(limit)
    .execute();
}

function findApprovalsOfParts(
  db: Reader,
  { organizationId }: Scope,
  table: EndedTable,
  id: string,
  limit: number,
): Promise<{ body: string }[]> {
  return builderOf(db)
    .selectFrom("approval")
    .select("body")
    .where((eb) =>
      table === "agent_execution"
        ? eb("agent_execution_id", "=", id)
        : eb(
            "action_id",
            "in",
            eb.selectFrom("workflow_action").select("workflow_action.id").where("execution_id", "=", id),
          ),
    )
    .where(unindexed("approval.organization_id"), "=", organizationId)
    .limit(limit)
    .execute();
}

/** Removes the row of a hidden execution that has no parts left. @returns its environment */
export async function removeHead(
  tx: WriteTransaction,
  { organizationId }: Scope,
  table: EndedTable,
  id: string,
): Promise<string | undefined> {
  const db = builderOf(tx.db);
  const run =
    table === "agent_execution"
      ? await db
          .selectFrom(table)
          .select(["environment_id", "creator_id"])
          .where("id", "=", id)
          .executeTakeFirst()
      : undefined;
  if (run) await removeRoleAssignmentsOn(tx, { organizationId }, id, run.creator_id);
  await db
    .deleteFrom(table)
    .where("id", "=", id)
    .where("organization_id", "=", organizationId)
    .where("removed_at", "is not", null)
    .execute();
  return run?.environment_id;
}
