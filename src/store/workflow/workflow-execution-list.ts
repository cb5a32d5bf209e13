import type { WorkflowExecution, WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import {
  type ListWorkflowExecutionOutputsResponse_ActionOutput as ActionOutput,
  ListWorkflowExecutionOutputsResponse_ActionOutputSchema as ActionOutputSchema,
} from "#gen/service/v1/workflow_service_pb.js";
import { type ListedRow, type PagePosition, positionById } from "../../domain/page.ts";
import { withSteps } from "../../domain/workflow/execution/workflow-action.ts";
import { withPlan } from "../../domain/workflow/execution/workflow-plan.ts";
import { checkDeadline, octets, shortText } from "../expressions.ts";
import { firstRows, firstRowsInPhases, type RowOrder } from "../first-rows.ts";
import { fromBody } from "../json.ts";
import { bodyColumns, listedRow, listedRows, SHORT_BYTES, textColumns } from "../listed-row.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import { matchesSearch } from "../scanned-search.ts";
import type { Reader, Scope } from "../store.ts";
import { findAction } from "./workflow-action.ts";
import { ACTION_FACTS, actionOfRow } from "./workflow-action-row.ts";
import { findWholeExecution } from "./workflow-execution.ts";
import { FACT_COLUMNS, responseExecution } from "./workflow-execution-row.ts";
import { executionsIn } from "./workflow-output.ts";
import { findPlanText, planOfText } from "./workflow-plan.ts";

/**
 * The conditions of a list of executions: fields combine with AND, values inside one with OR; empty
 * means any.
 */
export interface ExecutionFilter {
  readonly ids: readonly string[];
  readonly workflowIds: readonly string[];
  readonly phases: readonly number[];
  readonly hasFailedActions: boolean | undefined;
  /** Folded; empty means any. */
  readonly search: string;
}

const shortPlan = shortText("workflow_plan.body", SHORT_BYTES);

/** Returns up to `limit` executions after `after`, by id, which is the order of their start. */
export async function findExecutionPage(
  db: Reader,
  scope: Scope,
  filter: ExecutionFilter,
  direction: "asc" | "desc",
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<WorkflowExecution>[]> {
  const own = builderOf(db)
    .selectFrom("workflow_execution")
    .select([...FACT_COLUMNS, ...bodyColumns("workflow_execution")])
    .select(({ selectFrom }) => [
      selectFrom("workflow_plan")
        .select(shortPlan.as("body"))
        .whereRef("workflow_plan.execution_id", "=", "workflow_execution.id")
        .as("plan"),
      selectFrom("workflow_plan")
        .select(octets("workflow_plan.body").as("bytes"))
        .whereRef("workflow_plan.execution_id", "=", "workflow_execution.id")
        .as("plan_bytes"),
    ])
    .where(checkDeadline())
    .where("organization_id", "=", scope.organizationId)
    .where("removed_at", "is", null);
  let query = own;
  if (filter.ids.length > 0) query = query.where("id", "in", filter.ids);
  if (filter.workflowIds.length > 0) query = query.where("workflow_id", "in", filter.workflowIds);
  if (filter.hasFailedActions !== undefined) {
    // Literals, so that the engine uses the partial index of executions with failed actions.
    const isFailed = filter.hasFailedActions ? ">" : "=";
    query = query.where((eb) => eb("failed_count", isFailed, eb.lit(0)));
  }
  if (filter.search !== "") query = query.where(matchesSearch("workflow_execution", filter.search));
  const order = { direction, after };
  const rows = await firstRowsInPhases("workflow_execution", own, query, filter.phases, order, limit);
  // The response includes the errors of its actions.
  const whole = rows.map((row) => ({
    ...row,
    bytes:
      row.bytes +
      (row.plan_bytes ?? 0) +
      row.action_failures.length +
      row.action_warnings.length +
      (row.progress?.length ?? 0),
  }));
  const listed = listedRows(db, "workflow_execution", whole, positionById, (row) => row);
  return listed.map(({ read, ...row }) => ({
    ...row,
    async read() {
      const execution = await read();
      if (!execution) return undefined;
      const { plan, plan_bytes } = execution;
      const isLeftOut = plan === null && plan_bytes !== null;
      const planText = isLeftOut ? await findPlanText(db, scope, execution.id) : plan;
      return withPlan(responseExecution(execution), planOfText(planText));
    },
  }));
}

/**
 * Returns up to `limit` executions whose actions are not created yet, of all organizations, by id.
 * For the system.
 */
export async function findUnexpandedExecutions(
  db: Reader,
  limit: number,
): Promise<{ readonly organizationId: string; readonly id: string; readonly startedAt: number }[]> {
  return builderOf(db)
    .selectFrom("workflow_execution")
    .select(["organization_id as organizationId", "id", "started_at as startedAt"])
    .where((eb) => eb("expanded", "=", eb.lit(0)))
    .orderBy("id")
    .limit(limit)
    .execute();
}

/** The conditions of a list of actions, combined likewise. */
export interface ActionFilter {
  readonly ids: readonly string[];
  readonly executionIds: readonly string[];
  readonly workflowIds: readonly string[];
  readonly phases: readonly number[];
}

/** Returns up to `limit` actions with their steps after `after`, by id ascending. */
export async function findActionPage(
  db: Reader,
  scope: Scope,
  filter: ActionFilter,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<WorkflowExecutionAction>[]> {
  const own = builderOf(db)
    .selectFrom("workflow_action")
    .select([...ACTION_FACTS, ...bodyColumns("workflow_action")])
    .select((eb) => [
      shortText("workflow_action.progress", SHORT_BYTES).as("progress"),
      octets("workflow_action.progress").as("progress_bytes"),
      eb
        .selectFrom("workflow_plan")
        .select(octets("workflow_plan.body").as("bytes"))
        .whereRef("workflow_plan.execution_id", "=", "workflow_action.execution_id")
        .as("plan_bytes"),
    ])
    .where(checkDeadline())
    .where("organization_id", "=", scope.organizationId);
  let query = own;
  if (filter.ids.length > 0) query = query.where("id", "in", filter.ids);
  if (filter.executionIds.length > 0) query = query.where("execution_id", "in", filter.executionIds);
  if (filter.workflowIds.length > 0) query = query.where("workflow_id", "in", filter.workflowIds);
  const order = { direction: "asc", after } as const;
  const rows = await firstRowsInPhases("workflow_action", own, query, filter.phases, order, limit);
  const executionOf = executionsOnce(db, scope);
  return rows.map((row) => ({
    position: positionById(row),
    // Each action is returned with the steps, which are a part of its execution's plan.
    bytes: row.bytes + (row.progress_bytes ?? 0) + (row.plan_bytes ?? 0),
    async read() {
      const { body, progress } = row;
      const isWhole = body !== null && progress !== null;
      const action = isWhole ? actionOfRow({ ...row, body, progress }) : await findAction(db, scope, row.id);
      const execution = action && (await executionOf(row.execution_id));
      return execution && withSteps(action, execution);
    },
  }));
}

/** Returns up to `limit` outputs after `after`, by the id of their action ascending. */
export async function findActionOutputPage(
  db: Reader,
  scope: Scope,
  executionIds: readonly string[],
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<ActionOutput>[]> {
  const all = builderOf(db)
    .selectFrom("workflow_action")
    .select(["id", ...textColumns("workflow_action.outputs")])
    .where(checkDeadline());
  const own =
    executionIds.length > 0
      ? all.where("execution_id", "in", executionsIn(db, scope, executionIds))
      : all
          .where("organization_id", "=", scope.organizationId)
          .where("execution_id", "not in", (eb) =>
            eb
              .selectFrom("workflow_execution")
              .select("workflow_execution.id")
              .where("workflow_execution.organization_id", "=", scope.organizationId)
              .where("workflow_execution.removed_at", "is not", null),
          );
  const order: RowOrder = { columns: ["workflow_action.id"], direction: "asc", after: after && [after.id] };
  const rows = await firstRows(own, own.where("outputs", "is not", null), order, limit);
  return rows.map((row) =>
    listedRow(
      row,
      positionById(row),
      async () => (await selectOutputs(db, { id: row.id }))[0]?.outputs ?? undefined,
      ({ body }) => fromBody(ActionOutputSchema, body),
    ),
  );
}

const selectOutputs = prepared<{ id: string }, { outputs: string | null }>((db, { id }) =>
  db.selectFrom("workflow_action").select("outputs").where("id", "=", id),
);

/** Returns the distinct executions from which the steps of actions are read. */
function executionsOnce(db: Reader, scope: Scope): (id: string) => Promise<WorkflowExecution | undefined> {
  const known = new Map<string, Promise<WorkflowExecution | undefined>>();
  return (id) => {
    let execution = known.get(id);
    if (!execution) {
      execution = findWholeExecution(db, scope, id).then((stored) => stored?.execution);
      known.set(id, execution);
    }
    return execution;
  };
}
