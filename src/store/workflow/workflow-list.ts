import type { SelectQueryBuilder } from "kysely";
import { type Workflow, WorkflowSchema } from "#gen/service/v1/workflow_pb.js";
import type { ListedRow, PagePosition } from "../../domain/page.ts";
import type { WorkflowOrder } from "../../domain/workflow/workflow-order.ts";
import { checkDeadline } from "../expressions.ts";
import { countRows, firstRows, type RowOrder } from "../first-rows.ts";
import { fromBody } from "../json.ts";
import { type BodyRow, bodyColumns, listedRows } from "../listed-row.ts";
import { builderOf } from "../query-builder.ts";
import { matchesSearch } from "../scanned-search.ts";
import type { Schema } from "../schema.ts";
import type { Reader, Scope } from "../store.ts";

/**
 * The conditions of a list: fields combine with AND, values inside one with OR; empty means any.
 */
export interface WorkflowFilter {
  readonly workflowIds: readonly string[];
  /** Folded; empty means any. */
  readonly search: string;
  readonly creatorIds: readonly string[];
  /** Phases of the newest execution, WorkflowExecutionPhase by number. */
  readonly phases: readonly number[];
  /**
   * Milliseconds since 1970 UTC: an execution with a failed action started at this time or later;
   * undefined means any.
   */
  readonly failedSince: number | undefined;
  /** Undefined means any. */
  readonly disabled: boolean | undefined;
}

/** Sort key of a workflow without an ended execution: it sorts before every time. */
const NEVER = Number.NEGATIVE_INFINITY;

/** Returns up to `limit` workflows after `after`; the descending order is exactly mirrored. */
export async function findWorkflowPage(
  db: Reader,
  scope: Scope,
  filter: WorkflowFilter,
  order: WorkflowOrder,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<Workflow>[]> {
  const own = workflowsOf(db, scope);
  const rows: Row[] = [];
  for (const { isIn, ...by } of segments(order.field, order.direction, after)) {
    if (rows.length === limit) break;
    const [all, fitting] = [isIn(own), isIn(matching(own, filter)).select(COLUMNS)];
    rows.push(...(await firstRows(all, fitting, { ...by, direction: order.direction }, limit - rows.length)));
  }
  const positionOf = (row: Row) => ({
    key: order.field === "completion" ? (row.completed_at ?? NEVER) : 0,
    ...(order.field === "name" && { text: row.sort_name }),
    id: row.id,
  });
  return listedRows(db, "workflow", rows, positionOf, ({ body }) => fromBody(WorkflowSchema, body));
}

/** Returns the number of matching workflows, counted up to `limit`. */
export async function countWorkflows(
  db: Reader,
  scope: Scope,
  filter: WorkflowFilter,
  limit: number,
): Promise<number> {
  const own = workflowsOf(db, scope);
  return countRows(db, own, matching(own, filter), { columns: [ID], direction: "asc" }, limit);
}

const ID = "workflow.id";
const COMPLETED_AT = "workflow.completed_at";
const COLUMNS = [
  "workflow.id",
  "workflow.sort_name",
  "workflow.completed_at",
  ...bodyColumns("workflow"),
] as const;

type Row = Pick<Schema["workflow"], "sort_name" | "completed_at"> & BodyRow;
type Rows<O = object> = SelectQueryBuilder<Schema, "workflow", O>;
type Direction = WorkflowOrder["direction"];

/** A segment of an order that is one scan of an index. */
interface Segment extends Omit<RowOrder, "direction"> {
  isIn<O>(rows: Rows<O>): Rows<O>;
}

const IN_ALL: Pick<Segment, "isIn"> = { isIn: (rows) => rows };
const IN_COMPLETED: Pick<Segment, "isIn"> = { isIn: (rows) => rows.where(COMPLETED_AT, "is not", null) };
const IN_OTHERS: Pick<Segment, "isIn"> = { isIn: (rows) => rows.where(COMPLETED_AT, "is", null) };

/**
 * Returns the part of an order after `after`. By completion it consists of two segments: an OR of
 * them would scan the table.
 */
function segments(
  field: WorkflowOrder["field"],
  direction: Direction,
  after: PagePosition | undefined,
): Segment[] {
  if (field === "id") return [{ ...IN_ALL, columns: [ID], after: after && [after.id] }];
  if (field === "name") {
    return [{ ...IN_ALL, columns: ["workflow.sort_name", ID], after: after && [after.text ?? "", after.id] }];
  }
  const isNever = after?.key === NEVER;
  const never = { ...IN_OTHERS, columns: [ID], after: isNever ? [after.id] : undefined } as const;
  const place = after && !isNever ? [after.key, after.id] : undefined;
  const completed = { ...IN_COMPLETED, columns: [COMPLETED_AT, ID], after: place } as const;
  const isLast = direction === "asc" ? place : isNever;
  const both = direction === "asc" ? [never, completed] : [completed, never];
  return isLast ? both.slice(1) : both;
}

function workflowsOf(db: Reader, scope: Scope): Rows {
  return builderOf(db)
    .selectFrom("workflow")
    .where(checkDeadline())
    .where("workflow.organization_id", "=", scope.organizationId);
}

function matching(own: Rows, filter: WorkflowFilter): Rows {
  let query = own;
  if (filter.workflowIds.length > 0) query = query.where("workflow.id", "in", filter.workflowIds);
  if (filter.creatorIds.length > 0) query = query.where("workflow.creator_id", "in", filter.creatorIds);
  if (filter.disabled !== undefined) query = query.where("workflow.disabled", "=", filter.disabled ? 1 : 0);
  if (filter.search !== "") query = query.where(matchesSearch("workflow", filter.search));
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
          .where(checkDeadline())
          .whereRef("workflow_execution.workflow_id", "=", "workflow.id")
          .where("workflow_execution.started_at", ">=", failedSince)
          // A literal, so that the engine can use its partial index of failures.
          .where("workflow_execution.failed", "=", eb.lit(1))
          .where("workflow_execution.failed_count", ">", 0),
      ),
    );
  }
  return query;
}
