import { octets } from "../expressions.ts";
import { builderOf } from "../query-builder.ts";
import type { Handle, Scope, WriteTransaction } from "../store.ts";
import { FACT_COLUMNS, wholeBody } from "./workflow-execution-row.ts";

/**
 * Maximum bytes of bodies that one transaction records as removed, unless the first alone has more.
 */
const BODY_BYTES = 256 * 1024;

/**
 * Removes up to `limit` executions of a workflow permanently, the oldest first, of which only their
 * own rows are left. Where their bodies are large it removes fewer, at least one.
 * @returns the number of removed executions
 */
export async function removeExecutions(
  tx: WriteTransaction,
  scope: Scope,
  workflowId: string,
  limit: number,
): Promise<number> {
  const ofWorkflow = builderOf(tx.db)
    .selectFrom("workflow_execution")
    .where("workflow_id", "=", workflowId)
    .where("organization_id", "=", scope.organizationId);
  const found = await ofWorkflow
    .leftJoin("workflow_plan", "execution_id", "id")
    .select([
      "id",
      octets("workflow_execution.body").as("size"),
      octets("workflow_execution.progress").as("progressSize"),
      octets("workflow_plan.body").as("planSize"),
    ])
    .orderBy("id")
    .limit(limit)
    .execute();
  const ids: string[] = [];
  let bytes = 0;
  for (const { id, size, progressSize, planSize } of found) {
    bytes += size + (progressSize ?? 0) + (planSize ?? 0);
    if (ids.length > 0 && bytes > BODY_BYTES) break;
    ids.push(id);
  }
  if (ids.length === 0) return 0;
  const removed = await ofWorkflow
    .leftJoin("workflow_plan", "execution_id", "id")
    .select([...FACT_COLUMNS, "removed_at", "workflow_execution.body", "workflow_plan.body as plan"])
    .where("id", "in", ids)
    .orderBy("id")
    .execute();
  await builderOf(tx.db).deleteFrom("workflow_execution").where("id", "in", ids).execute();
  for (const { plan, removed_at, ...row } of removed) {
    // Retention has recorded that it took it away.
    if (removed_at !== null) continue;
    tx.record({
      organizationId: scope.organizationId,
      type: "workflow_execution",
      id: row.id,
      kind: "deleted",
      before: wholeBody(row, plan),
    });
  }
  return removed.length;
}

/**
 * Tables whose rows are removed with the executions of a workflow without a record of their own,
 * children first.
 */
export const PARTS_OF_WORKFLOW = [
  "step_log",
  "pull_request",
  "workflow_action",
  "workflow_trigger_event",
  "webhook_delivery",
] as const;

/**
 * Removes up to `limit` rows of one kind that belong to a workflow: pieces of the logs of its
 * actions, its actions, or the entries of its ledger. It leaves no record.
 * @returns the number of removed rows
 */
export async function removePartsOfWorkflow(
  { db }: WriteTransaction,
  part: (typeof PARTS_OF_WORKFLOW)[number],
  workflowId: Handle<"workflow">,
  limit: number,
): Promise<number> {
  if (part === "step_log") return removeLogs(db, workflowId, limit);
  if (part === "webhook_delivery") return removeDeliveries(db, workflowId, limit);
  const { numDeletedRows } = await builderOf(db)
    .deleteFrom(part)
    .where("id", "in", ({ selectFrom }) =>
      selectFrom(part).select("id").where("workflow_id", "=", workflowId).limit(limit),
    )
    .executeTakeFirstOrThrow();
  return Number(numDeletedRows);
}

async function removeDeliveries(
  db: WriteTransaction["db"],
  workflowId: string,
  limit: number,
): Promise<number> {
  const { numDeletedRows } = await builderOf(db)
    .deleteFrom("webhook_delivery")
    .where("workflow_id", "=", workflowId)
    .where("delivery_id", "in", ({ selectFrom }) =>
      selectFrom("webhook_delivery").select("delivery_id").where("workflow_id", "=", workflowId).limit(limit),
    )
    .executeTakeFirstOrThrow();
  return Number(numDeletedRows);
}

async function removeLogs(db: WriteTransaction["db"], workflowId: string, limit: number): Promise<number> {
  const pieces = await builderOf(db)
    .selectFrom("workflow_action")
    .innerJoin("step_log", "step_log.action_id", "workflow_action.id")
    .select(["action_id", "step_log.attempt", "step_index", "start"])
    .where("workflow_action.workflow_id", "=", workflowId)
    .limit(limit)
    .execute();
  for (const { action_id, attempt, step_index, start } of pieces) {
    await builderOf(db)
      .deleteFrom("step_log")
      .where("action_id", "=", action_id)
      .where("attempt", "=", attempt)
      .where("step_index", "=", step_index)
      .where("start", "=", start)
      .execute();
  }
  return pieces.length;
}
