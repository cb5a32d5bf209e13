import type { Kysely, SelectQueryBuilder } from "kysely";
import { type Workflow, WorkflowSchema } from "#gen/service/v1/workflow_pb.js";
import type { ListedRow, PagePosition } from "../../domain/page.ts";
import type { WorkflowOrder } from "../../domain/workflow/workflow-order.ts";
import { fromBody } from "../json.ts";
import { type BodyRow, bodyColumns, listedRows } from "../listed-row.ts";
import type { Schema } from "../schema.ts";
import { contains, inTime } from "../sqlite/expressions.ts";
import type { Scope } from "../store.ts";

/** What a list is narrowed to: fields combine with AND, values inside one with OR; empty means any. */
export interface WorkflowFilter {
  readonly workflowIds: readonly string[];
  /** Folded; empty means any. */
  readonly search: string;
  readonly creatorIds: readonly string[];
  /** Phases of the newest execution, WorkflowExecutionPhase by number. */
  readonly phases: readonly number[];
  /** Milliseconds since 1970 UTC: an execution with a failed action started then or later; undefined means any. */
  readonly failedSince: number | undefined;
  /** Undefined means any. */
  readonly disabled: boolean | undefined;
}

/** Sort key of a workflow of which no execution came to its end: it stands before every time there is. */
const NEVER = Number.NEGATIVE_INFINITY;

/** Up to `limit` workflows behind `after`; the descending order is exactly mirrored. */
export async function listWorkflows(
  db: Kysely<Schema>,
  scope: Scope,
  filter: WorkflowFilter,
  order: WorkflowOrder,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<Workflow>[]> {
  const query = matching(db, scope, filter).select(COLUMNS);
  const rows = await ORDERS[order.field](query, order.direction, after, limit);
  const positionOf = (row: Row) => ({
    key: order.field === "completion" ? (row.completed_at ?? NEVER) : 0,
    ...(order.field === "name" && { text: row.sort_name }),
    id: row.id,
  });
  return listedRows(db, "workflow", rows, positionOf, ({ body }) => fromBody(WorkflowSchema, body));
}

/** How many workflows match, counted no further than `limit`. */
export async function countWorkflows(
  db: Kysely<Schema>,
  scope: Scope,
  filter: WorkflowFilter,
  limit: number,
): Promise<number> {
  const { count } = await db
    .selectFrom(matching(db, scope, filter).select("workflow.id").limit(limit).as("found"))
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return count;
}

const COLUMNS = [
  "workflow.id",
  "workflow.sort_name",
  "workflow.completed_at",
  ...bodyColumns("workflow"),
] as const;

type Row = Pick<Schema["workflow"], "sort_name" | "completed_at"> & BodyRow;
type Rows = SelectQueryBuilder<Schema, "workflow", Row>;
type Direction = WorkflowOrder["direction"];

const ORDERS = { id: byId, name: byName, completion: byCompletion };

function byId(query: Rows, direction: Direction, after: PagePosition | undefined, limit: number) {
  const rest = after ? query.where("workflow.id", onward(direction), after.id) : query;
  return rest.orderBy("workflow.id", direction).limit(limit).execute();
}

function byName(query: Rows, direction: Direction, after: PagePosition | undefined, limit: number) {
  const rest = after
    ? query.where((eb) =>
        eb(
          eb.refTuple("workflow.sort_name", "workflow.id"),
          onward(direction),
          eb.tuple(after.text ?? "", after.id),
        ),
      )
    : query;
  return rest
    .orderBy("workflow.sort_name", direction)
    .orderBy("workflow.id", direction)
    .limit(limit)
    .execute();
}

/** One walk along the index for each stretch of the order: an OR of them would scan. */
async function byCompletion(
  query: Rows,
  direction: Direction,
  after: PagePosition | undefined,
  limit: number,
) {
  const completed = query
    .where("workflow.completed_at", "is not", null)
    .orderBy("workflow.completed_at", direction)
    .orderBy("workflow.id", direction);
  const never = query.where("workflow.completed_at", "is", null).orderBy("workflow.id", direction);
  let stretches: Rows[];
  if (!after) {
    stretches = direction === "asc" ? [never, completed] : [completed, never];
  } else if (after.key === NEVER) {
    const rest = never.where("workflow.id", onward(direction), after.id);
    stretches = direction === "asc" ? [rest, completed] : [rest];
  } else {
    const rest = completed.where((eb) =>
      eb(
        eb.refTuple("workflow.completed_at", "workflow.id"),
        onward(direction),
        eb.tuple(after.key, after.id),
      ),
    );
    stretches = direction === "asc" ? [rest] : [rest, never];
  }
  const rows: Row[] = [];
  for (const stretch of stretches) {
    if (rows.length === limit) break;
    rows.push(...(await stretch.limit(limit - rows.length).execute()));
  }
  return rows;
}

function onward(direction: Direction) {
  return direction === "asc" ? ">" : "<";
}

function matching(db: Kysely<Schema>, scope: Scope, filter: WorkflowFilter) {
  let query = db
    .selectFrom("workflow")
    .where(inTime())
    .where("workflow.organization_id", "=", scope.organizationId);
  if (filter.workflowIds.length > 0) query = query.where("workflow.id", "in", filter.workflowIds);
  if (filter.creatorIds.length > 0) query = query.where("workflow.creator_id", "in", filter.creatorIds);
  if (filter.disabled !== undefined) query = query.where("workflow.disabled", "=", filter.disabled ? 1 : 0);
  // The text holds one value a line; a search across lines would find what no value contains.
  if (filter.search.includes("\n")) query = query.where((eb) => eb.lit(false));
  else if (filter.search !== "") query = query.where(contains("workflow.search_text", filter.search));
  if (filter.phases.length > 0) {
    query = query.where((eb) =>
      eb(
        eb
          .selectFrom("workflow_execution")
          .select("workflow_execution.phase")
          .whereRef("workflow_execution.workflow_id", "=", "workflow.id")
          .orderBy("workflow_execution.id", "desc")
          .limit(1),
        "in",
        filter.phases,
      ),
    );
  }
  const { failedSince } = filter;
  if (failedSince !== undefined) {
    query = query.where((eb) =>
      eb.exists(
        eb
          .selectFrom("workflow_execution")
          .select("workflow_execution.id")
          // Of those that failed once, all may have been retried with success.
          .where(inTime())
          .whereRef("workflow_execution.workflow_id", "=", "workflow.id")
          .where("workflow_execution.started_at", ">=", failedSince)
          // Written out, so that the engine sees that its index of failures holds them all.
          .where("workflow_execution.failed", "=", eb.lit(1))
          .where("workflow_execution.failed_count", ">", 0),
      ),
    );
  }
  return query;
}
