import type { Scope, WriteTransaction } from "./store.ts";

/**
 * Removes up to `limit` executions of a workflow for good, the oldest first,
 * each with its actions, their logs and outputs.
 *
 * @returns how many were removed
 */
export async function removeExecutions(
  tx: WriteTransaction,
  scope: Scope,
  workflowId: string,
  limit: number,
): Promise<number> {
  const found = await tx.db
    .selectFrom("workflow_execution")
    .select(["id", "body"])
    .where("workflow_id", "=", workflowId)
    .where("organization_id", "=", scope.organizationId)
    .orderBy("id")
    .limit(limit)
    .execute();
  if (found.length === 0) return 0;
  await tx.db
    .deleteFrom("workflow_execution")
    .where(
      "id",
      "in",
      found.map(({ id }) => id),
    )
    .execute();
  for (const { id, body } of found) {
    tx.record({
      organizationId: scope.organizationId,
      type: "workflow_execution",
      id,
      kind: "deleted",
      before: body,
    });
  }
  return found.length;
}
