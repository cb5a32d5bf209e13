import { WorkflowExecutionPhase as Phase } from "#gen/service/v1/workflow_pb.js";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope } from "../store.ts";

/** The conditions for executions that are counted; both must hold. */
export interface SummaryFilter {
  /**
   * Start of the range of end times, inclusive, and its end, exclusive; milliseconds since 1970
   * UTC.
   */
  readonly from: number;
  readonly until: number;
  /** Empty means any. */
  readonly workflowIds: readonly string[];
}

export interface ExecutionCounts {
  /** Number of executions completed without a failure. */
  readonly successful: number;
  /** Number of executions completed with a failure. */
  readonly failed: number;
  /** Number of all, including stopped ones. */
  readonly total: number;
}

export async function countExecutions(
  db: Reader,
  scope: Scope,
  { from, until, workflowIds }: SummaryFilter,
): Promise<ExecutionCounts> {
  let query = builderOf(db)
    .selectFrom("workflow_execution")
    .where("organization_id", "=", scope.organizationId)
    .where("finished_at", ">=", from)
    .where("finished_at", "<", until);
  if (workflowIds.length > 0) query = query.where("workflow_id", "in", workflowIds);
  const rows = await query
    .select(["phase", "failed", (eb) => eb.fn.countAll<number>().as("count")])
    .groupBy(["phase", "failed"])
    .execute();
  const sum = (of: typeof rows) => of.reduce((total, { count }) => total + count, 0);
  const completed = rows.filter(({ phase }) => phase === Phase.COMPLETED);
  return {
    successful: sum(completed.filter(({ failed }) => failed === 0)),
    failed: sum(completed.filter(({ failed }) => failed === 1)),
    total: sum(rows),
  };
}

/** Returns the number of workflows of the scope. */
export async function countAllWorkflows(db: Reader, scope: Scope): Promise<number> {
  const { count } = await builderOf(db)
    .selectFrom("workflow")
    .where("organization_id", "=", scope.organizationId)
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return count;
}
