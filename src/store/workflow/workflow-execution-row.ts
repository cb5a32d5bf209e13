import { type WorkflowExecution, WorkflowExecutionSchema } from "#gen/service/v1/workflow_pb.js";
import { concludedExecution } from "../../domain/workflow/execution/execution-conclusion.ts";
import { withPlan } from "../../domain/workflow/execution/workflow-plan.ts";
import { fromBody, toBody } from "../json.ts";
import { actionErrorsOfRow } from "./workflow-action-errors.ts";
import { planOfText } from "./workflow-plan.ts";
import type { WorkflowExecutionTable } from "./workflow-schema.ts";

/** The columns that an execution is read from besides its body. */
export const FACT_COLUMNS = [
  "id",
  "pending_count",
  "running_count",
  "failed_count",
  "done_count",
  "stopped_count",
  "action_failures",
  "action_warnings",
] as const;

/** The columns that an execution is read from. */
export const EXECUTION_COLUMNS = [...FACT_COLUMNS, "body"] as const;

export type ExecutionRow = Pick<WorkflowExecutionTable, (typeof EXECUTION_COLUMNS)[number]>;

/**
 * Returns an execution as responses show it, but without its plan: with its counts, its conclusion
 * and the errors of its actions.
 */
export function responseExecution(row: ExecutionRow): WorkflowExecution {
  return concludedExecution(executionOfRow(row), actionErrorsOfRow(row));
}

/** Returns an execution with its counts and without its plan. */
export function executionOfRow(row: ExecutionRow): WorkflowExecution {
  const execution = fromBody(WorkflowExecutionSchema, row.body);
  const { status } = execution;
  if (status) {
    status.pendingActionCount = row.pending_count;
    status.runningActionCount = row.running_count;
    status.failedActionCount = row.failed_count;
    status.doneActionCount = row.done_count;
    status.stoppedActionCount = row.stopped_count;
  }
  return execution;
}

/** Returns the text of an execution with its plan, as the record shows it. */
export function wholeBody(body: string, plan: string | null): string {
  if (plan === null) return body;
  return toBody(WorkflowExecutionSchema, withPlan(fromBody(WorkflowExecutionSchema, body), planOfText(plan)));
}
