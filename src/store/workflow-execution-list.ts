import type { Kysely } from "kysely";
import {
  type WorkflowExecution,
  type WorkflowExecutionAction,
  WorkflowExecutionSchema,
} from "#gen/service/v1/workflow_pb.js";
import {
  type ListWorkflowExecutionOutputsResponse_ActionOutput as ActionOutput,
  ListWorkflowExecutionOutputsResponse_ActionOutputSchema as ActionOutputSchema,
} from "#gen/service/v1/workflow_service_pb.js";
import type { PagePosition } from "../domain/page.ts";
import { withSteps } from "../domain/workflow-action.ts";
import { fromBody } from "./json.ts";
import { mergePhases } from "./phase-walk.ts";
import type { Schema } from "./schema.ts";
import { contains } from "./sqlite/expressions.ts";
import type { Scope } from "./store.ts";
import { actionOfRow } from "./workflow-action.ts";
import { answeredExecution, EXECUTION_COLUMNS } from "./workflow-execution-row.ts";
import { executionsIn } from "./workflow-output.ts";

/** What a list of executions is narrowed to: fields combine with AND, values inside one with OR; empty means any. */
export interface ExecutionFilter {
  readonly ids: readonly string[];
  readonly workflowIds: readonly string[];
  readonly phases: readonly number[];
  readonly hasFailedActions: boolean | undefined;
  /** Folded; empty means any. */
  readonly search: string;
}

export interface ListedExecution {
  readonly execution: WorkflowExecution;
  readonly position: PagePosition;
}

/** Up to `limit` executions behind `after`, by id, which is the order of their start. */
export async function listExecutions(
  db: Kysely<Schema>,
  scope: Scope,
  filter: ExecutionFilter,
  direction: "asc" | "desc",
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedExecution[]> {
  let query = db
    .selectFrom("workflow_execution")
    .select(EXECUTION_COLUMNS)
    .where("organization_id", "=", scope.organizationId);
  if (after) query = query.where("id", direction === "asc" ? ">" : "<", after.id);
  if (filter.ids.length > 0) query = query.where("id", "in", filter.ids);
  if (filter.workflowIds.length > 0) query = query.where("workflow_id", "in", filter.workflowIds);
  if (filter.hasFailedActions !== undefined) {
    // Literals, so that the index of those that have failed actions fits.
    const isFailed = filter.hasFailedActions ? ">" : "=";
    query = query.where((eb) => eb("failed_count", isFailed, eb.lit(0)));
  }
  // The text holds one value a line; a search across lines would find what no value contains.
  if (filter.search.includes("\n")) query = query.where((eb) => eb.lit(false));
  else if (filter.search !== "") {
    query = query.where(contains("workflow_execution.search_text", filter.search));
  }
  const ordered = query.orderBy("id", direction).limit(limit);
  const rows =
    filter.phases.length === 0
      ? await ordered.execute()
      : await db
          .selectFrom("workflow_execution")
          .select(EXECUTION_COLUMNS)
          .where(
            "id",
            "in",
            await mergePhases(filter.phases, direction, limit, (phase) =>
              ordered.clearSelect().select("id").where("phase", "=", phase).execute(),
            ),
          )
          .orderBy("id", direction)
          .execute();
  return rows.map((row) => ({ execution: answeredExecution(row), position: { key: 0, id: row.id } }));
}

/** The same for actions. */
export interface ActionFilter {
  readonly ids: readonly string[];
  readonly executionIds: readonly string[];
  readonly workflowIds: readonly string[];
  readonly phases: readonly number[];
}

export interface ListedAction {
  /** With its steps. */
  readonly action: WorkflowExecutionAction;
  readonly position: PagePosition;
}

/** Up to `limit` actions behind `after`, by id ascending. */
export async function listActions(
  db: Kysely<Schema>,
  scope: Scope,
  filter: ActionFilter,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedAction[]> {
  let query = db
    .selectFrom("workflow_action")
    .select(["id", "execution_id", "body"])
    .where("organization_id", "=", scope.organizationId);
  if (after) query = query.where("id", ">", after.id);
  if (filter.ids.length > 0) query = query.where("id", "in", filter.ids);
  if (filter.executionIds.length > 0) query = query.where("execution_id", "in", filter.executionIds);
  if (filter.workflowIds.length > 0) query = query.where("workflow_id", "in", filter.workflowIds);
  const ordered = query.orderBy("id").limit(limit);
  const rows =
    filter.phases.length === 0
      ? await ordered.execute()
      : await db
          .selectFrom("workflow_action")
          .select(["id", "execution_id", "body"])
          .where(
            "id",
            "in",
            await mergePhases(filter.phases, "asc", limit, (phase) =>
              ordered.clearSelect().select("id").where("phase", "=", phase).execute(),
            ),
          )
          .orderBy("id")
          .execute();
  const executions = await findExecutionsOf(db, scope, rows);
  return rows.flatMap((row) => {
    const execution = executions.get(row.execution_id);
    if (!execution) return [];
    return [{ action: withSteps(actionOfRow(row), execution), position: { key: 0, id: row.id } }];
  });
}

export interface ListedOutputs {
  readonly output: ActionOutput;
  readonly position: PagePosition;
}

/** Up to `limit` outputs behind `after`, by the id of their action ascending. */
export async function listOutputs(
  db: Kysely<Schema>,
  scope: Scope,
  executionIds: readonly string[],
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedOutputs[]> {
  let query = db.selectFrom("workflow_action").select(["id", "outputs"]).where("outputs", "is not", null);
  query =
    executionIds.length > 0
      ? query.where("execution_id", "in", executionsIn(db, scope, executionIds))
      : query.where("organization_id", "=", scope.organizationId);
  if (after) query = query.where("id", ">", after.id);
  const rows = await query.orderBy("id").limit(limit).execute();
  return rows.map(({ id, outputs }) => ({
    output: fromBody(ActionOutputSchema, outputs ?? "{}"),
    position: { key: 0, id },
  }));
}

/** What the steps of actions are read from, each execution once. */
async function findExecutionsOf(
  db: Kysely<Schema>,
  scope: Scope,
  rows: readonly { readonly execution_id: string }[],
): Promise<ReadonlyMap<string, WorkflowExecution>> {
  const ids = [...new Set(rows.map(({ execution_id }) => execution_id))];
  if (ids.length === 0) return new Map();
  const found = await db
    .selectFrom("workflow_execution")
    .select(["id", "body"])
    .where("organization_id", "=", scope.organizationId)
    .where("id", "in", ids)
    .execute();
  return new Map(found.map(({ id, body }) => [id, fromBody(WorkflowExecutionSchema, body)]));
}
