import { type Workflow, WorkflowSchema } from "#gen/service/v1/workflow_pb.js";
import { fold } from "../../domain/text/fold.ts";
import { workflowSearchText } from "../../domain/workflow/workflow.ts";
import { bytesOf } from "../expressions.ts";
import { removeRoleAssignmentsOn } from "../identity/role-assignment.ts";
import { fromBody, sharedFromBody, toBody } from "../json.ts";
import { textOf } from "../long-text.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Found, Reader, Scope, WriteTransaction } from "../store.ts";
import { replaceSchedules } from "./workflow-schedule.ts";

/** A workflow that was found or created in the scope of the caller. */
export type FoundWorkflow = Found<Workflow, "workflow">;

const selectWorkflow = prepared<{ id: string; organizationId: string }, { body: Uint8Array | string }>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("workflow")
      .select(bytesOf("workflow.body").as("body"))
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

/** Cached, since a workflow is read with each start and seldom changes. */
const workflowOfBody = sharedFromBody(WorkflowSchema);

/** Returns a workflow without its webhookUrl, which the row does not contain. It is shared and must not be modified. */
export async function findWorkflow(db: Reader, scope: Scope, id: string): Promise<FoundWorkflow | undefined> {
  const [row] = await selectWorkflow(db, { id, organizationId: scope.organizationId });
  return row && (workflowOfBody(textOf(row.body)) as FoundWorkflow);
}

const selectOwner = prepared<{ id: string }, { organization_id: string }>((db, { id }) =>
  db.selectFrom("workflow").select("organization_id").where("id", "=", id),
);

/** Returns the organization of a workflow, without reading the workflow. */
export async function findWorkflowOwner(db: Reader, id: string): Promise<Scope | undefined> {
  const [row] = await selectOwner(db, { id });
  return row && { organizationId: row.organization_id };
}

const selectAnyWorkflow = prepared<{ id: string }, { organization_id: string; body: string }>((db, { id }) =>
  db.selectFrom("workflow").select(["organization_id", "body"]).where("id", "=", id),
);

/**
 * Returns a workflow of any organization: for deliveries to a webhook, which name no other scope.
 */
export async function findAnyWorkflow(
  db: Reader,
  id: string,
): Promise<{ readonly organizationId: string; readonly workflow: FoundWorkflow } | undefined> {
  const [row] = await selectAnyWorkflow(db, { id });
  return (
    row && {
      organizationId: row.organization_id,
      workflow: fromBody(WorkflowSchema, row.body) as FoundWorkflow,
    }
  );
}

const selectOfExecutor = prepared<{ executorId: string; organizationId: string }, { body: string }>(
  (db, { executorId, organizationId }) =>
    db
      .selectFrom("workflow")
      .select("body")
      .where("executor_id", "=", executorId)
      .where("organization_id", "=", organizationId)
      .orderBy("id"),
);

/** Returns the workflows that run as a user or service account, by id ascending. */
export async function findWorkflowsOfExecutor(
  db: Reader,
  scope: Scope,
  executorId: string,
): Promise<Workflow[]> {
  const rows = await selectOfExecutor(db, { executorId, organizationId: scope.organizationId });
  return rows.map(({ body }) => fromBody(WorkflowSchema, body));
}

/**
 * Returns workflows that are pending deletion, of all organizations, by id ascending. For the
 * system.
 */
export async function findDeletingWorkflows(
  db: Reader,
  afterId: string,
  limit: number,
): Promise<{ organizationId: string; workflow: FoundWorkflow }[]> {
  const rows = await builderOf(db)
    .selectFrom("workflow")
    .select(["organization_id", "body"])
    .where((eb) => eb("deleting", "=", eb.lit(1)))
    .where("id", ">", afterId)
    .orderBy("id")
    .limit(limit)
    .execute();
  return rows.map((row) => ({
    organizationId: row.organization_id,
    workflow: fromBody(WorkflowSchema, row.body) as FoundWorkflow,
  }));
}

/** @returns the same workflow */
export async function insertWorkflow(
  tx: WriteTransaction,
  scope: Scope,
  workflow: Workflow,
): Promise<FoundWorkflow> {
  const columns = changingColumns(workflow);
  await builderOf(tx.db)
    .insertInto("workflow")
    .values({
      ...columns,
      id: workflow.id,
      organization_id: scope.organizationId,
      creator_id: workflow.metadata?.creator?.id ?? "",
      completed_at: null,
    })
    .execute();
  await replaceSchedules(tx, scope, workflow);
  tx.record({
    organizationId: scope.organizationId,
    type: "workflow",
    id: workflow.id,
    kind: "created",
    after: columns.body,
  });
  return workflow as FoundWorkflow;
}

export async function updateWorkflow(
  tx: WriteTransaction,
  scope: Scope,
  before: Workflow,
  after: Workflow,
): Promise<void> {
  const columns = changingColumns(after);
  await builderOf(tx.db)
    .updateTable("workflow")
    .set(columns)
    .where("id", "=", after.id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  await replaceSchedules(tx, scope, after, before);
  tx.record({
    organizationId: scope.organizationId,
    type: "workflow",
    id: after.id,
    kind: "updated",
    before: toBody(WorkflowSchema, before),
    after: columns.body,
  });
}

/**
 * Removes the row permanently, with its secret, schedules and ledger; its executions must have been
 * removed.
 */
export async function removeWorkflow(tx: WriteTransaction, scope: Scope, workflow: Workflow): Promise<void> {
  await removeRoleAssignmentsOn(tx, scope, workflow.id, null);
  await builderOf(tx.db)
    .deleteFrom("workflow")
    .where("id", "=", workflow.id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  tx.record({
    organizationId: scope.organizationId,
    type: "workflow",
    id: workflow.id,
    kind: "deleted",
    before: toBody(WorkflowSchema, workflow),
  });
}

const updateCompletion = prepared<{ id: string; organizationId: string; at: number }, unknown>(
  (db, { id, organizationId, at }) =>
    db
      .updateTable("workflow")
      .set({ completed_at: at })
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

/**
 * Sets the time at which an execution last ended (milliseconds since 1970 UTC); this is not a
 * change of the workflow.
 */
export async function setLastCompletion(
  tx: WriteTransaction,
  scope: Scope,
  id: string,
  at: number,
): Promise<void> {
  await updateCompletion(tx.db, { id, organizationId: scope.organizationId, at });
}

function changingColumns(workflow: Workflow) {
  const { metadata, spec } = workflow;
  return {
    executor_id: metadata?.executor?.id ?? "",
    executor_principal: metadata?.executor?.principal ?? 0,
    disabled: spec?.disabled ? 1 : 0,
    deleting: spec?.deleting ? 1 : 0,
    sort_name: fold(metadata?.name ?? ""),
    search_text: workflowSearchText(workflow),
    body: toBody(WorkflowSchema, workflow),
  };
}
