import {
  type ListWorkflowExecutionOutputsResponse_ActionOutput as ActionOutput,
  ListWorkflowExecutionOutputsResponse_ActionOutputSchema as ActionOutputSchema,
} from "#gen/service/v1/workflow_service_pb.js";
import { fromBody, toBody } from "../json.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";

const setOutputsText = prepared<{ id: string; organizationId: string; outputs: string | null }, unknown>(
  (db, { id, organizationId, outputs }) =>
    db
      .updateTable("workflow_action")
      .set({ outputs })
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

/** Stores the outputs of an action; undefined removes them. */
export async function setOutputs(
  tx: WriteTransaction,
  { organizationId }: Scope,
  actionId: string,
  outputs: ActionOutput | undefined,
): Promise<void> {
  await setOutputsText(tx.db, {
    id: actionId,
    organizationId,
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

/** Returns the outputs of one action; undefined until it reports any. */
export async function findOutputs(
  db: Reader,
  scope: Scope,
  actionId: string,
): Promise<ActionOutput | undefined> {
  const [row] = await selectOwnOutputs(db, { id: actionId, organizationId: scope.organizationId });
  return row?.outputs ? fromBody(ActionOutputSchema, row.outputs) : undefined;
}

/**
 * Returns those of the executions that belong to the scope and were not taken away. As a subquery, it makes the engine
 * start from the executions; with a condition on the scope's id it would read all rows of the
 * scope.
 */
export function executionsIn(db: Reader, scope: Scope, ids: readonly string[]) {
  return builderOf(db)
    .selectFrom("workflow_execution")
    .select("workflow_execution.id")
    .where("workflow_execution.organization_id", "=", scope.organizationId)
    .where("workflow_execution.id", "in", ids)
    .where("workflow_execution.removed_at", "is", null);
}

/** Returns the outputs of an execution's actions except its report, in their order. */
export async function findOutputsOfActions(
  db: Reader,
  scope: Scope,
  executionId: string,
  { withFailed }: { readonly withFailed: boolean },
): Promise<ActionOutput[]> {
  let query = builderOf(db)
    .selectFrom("workflow_action")
    .select("outputs")
    .where("execution_id", "in", executionsIn(db, scope, [executionId]))
    .where("is_report", "=", 0)
    .where("outputs", "is not", null);
  if (!withFailed) query = query.where("failed", "=", 0);
  const rows = await query.orderBy("id").execute();
  return rows.map(({ outputs }) => fromBody(ActionOutputSchema, outputs ?? "{}"));
}
