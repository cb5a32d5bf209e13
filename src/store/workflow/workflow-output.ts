import type { Kysely } from "kysely";
import {
  type ListWorkflowExecutionOutputsResponse_ActionOutput as ActionOutput,
  ListWorkflowExecutionOutputsResponse_ActionOutputSchema as ActionOutputSchema,
} from "#gen/service/v1/workflow_service_pb.js";
import { fromBody, toBody } from "../json.ts";
import { prepared } from "../prepared.ts";
import type { Schema } from "../schema.ts";
import type { Scope, WriteTransaction } from "../store.ts";

const setOutputsText = prepared<{ id: string; outputs: string | null }, unknown>((db, { id, outputs }) =>
  db.updateTable("workflow_action").set({ outputs }).where("id", "=", id),
);

/** Keeps what an action reported; undefined forgets it. */
export async function setOutputs(
  tx: WriteTransaction,
  actionId: string,
  outputs: ActionOutput | undefined,
): Promise<void> {
  await setOutputsText(tx.db, {
    id: actionId,
    outputs: outputs ? toBody(ActionOutputSchema, outputs) : null,
  });
}

const selectOwnOutputs = prepared<{ id: string; organizationId: string }, { outputs: string | null }>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("workflow_action")
      .select("outputs")
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

/** What one action reported; undefined while it reported nothing. */
export async function findOutputs(
  db: Kysely<Schema>,
  scope: Scope,
  actionId: string,
): Promise<ActionOutput | undefined> {
  const [row] = await selectOwnOutputs(db, { id: actionId, organizationId: scope.organizationId });
  return row?.outputs ? fromBody(ActionOutputSchema, row.outputs) : undefined;
}

/**
 * Those of the executions that are the scope's. Asked for in their place, the
 * engine goes by the executions; beside the scope's id it would go through
 * everything that the scope has.
 */
export function executionsIn(db: Kysely<Schema>, scope: Scope, ids: readonly string[]) {
  return db
    .selectFrom("workflow_execution")
    .select("workflow_execution.id")
    .where("workflow_execution.organization_id", "=", scope.organizationId)
    .where("workflow_execution.id", "in", ids);
}

/** What the actions of an execution but its report reported, in their order. */
export async function findOutputsOfActions(
  db: Kysely<Schema>,
  scope: Scope,
  executionId: string,
  { withFailed }: { readonly withFailed: boolean },
): Promise<ActionOutput[]> {
  let query = db
    .selectFrom("workflow_action")
    .select("outputs")
    .where("execution_id", "in", executionsIn(db, scope, [executionId]))
    .where("is_report", "=", 0)
    .where("outputs", "is not", null);
  if (!withFailed) query = query.where("failed", "=", 0);
  const rows = await query.orderBy("id").execute();
  return rows.map(({ outputs }) => fromBody(ActionOutputSchema, outputs ?? "{}"));
}
