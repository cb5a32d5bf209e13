import type { JsonObject } from "@bufbuild/protobuf";
import {
  WorkflowExecution_StatusSchema as StatusSchema,
  type WorkflowExecution,
  WorkflowExecutionSchema,
} from "#gen/service/v1/workflow_pb.js";
import { concludedExecution } from "../../domain/workflow/execution/execution-conclusion.ts";
import { phaseOfExecution } from "../../domain/workflow/execution/workflow-execution.ts";
import { withoutPlan, withPlan } from "../../domain/workflow/execution/workflow-plan.ts";
import { sharedFromBody, toBody, toJsonObject } from "../json.ts";
import { actionErrorsOfRow } from "./workflow-action-errors.ts";
import { planOfText } from "./workflow-plan.ts";
import { progressText, statusOfProgress, timeColumn, timeOfColumn } from "./workflow-progress.ts";
import type { WorkflowExecutionTable } from "./workflow-schema.ts";

/** The columns from which an execution is read, without its body. */
export const FACT_COLUMNS = [
  "id",
  "phase",
  "desired_phase",
  "session",
  "pending_count",
  "running_count",
  "failed_count",
  "done_count",
  "stopped_count",
  "finished_at",
  "action_failures",
  "action_warnings",
  "progress",
] as const;

/** The columns from which an execution is read. */
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
  const fixed = fixedPart(row.body);
  const { metadata, spec } = fixed;
  const session = row.session ?? "";
  const finishedAt = timeOfColumn(row.finished_at);
  const status = statusOfProgress(StatusSchema, row.progress, session);
  status.phase = row.phase;
  status.pendingActionCount = row.pending_count;
  status.runningActionCount = row.running_count;
  status.failedActionCount = row.failed_count;
  status.doneActionCount = row.done_count;
  status.stoppedActionCount = row.stopped_count;
  return {
    ...fixed,
    ...(metadata && { metadata: { ...metadata, ...(finishedAt && { finishedAt }) } }),
    ...(spec && { spec: { ...spec, session, desiredPhase: row.desired_phase } }),
    status,
  };
}

/** Cached, since an execution is read with each of its actions, and its body never changes. */
const fixedPart = sharedFromBody(WorkflowExecutionSchema);

/** Returns the text of the values of an execution that never change and are not part of its plan. */
export function executionBody(execution: WorkflowExecution): string {
  const { status: _, ...fixed } = withoutPlan(execution);
  const { metadata, spec } = fixed;
  if (metadata) {
    const { finishedAt: __, ...times } = metadata;
    fixed.metadata = times;
  }
  if (spec) fixed.spec = { ...spec, session: "", desiredPhase: 0 };
  const body = toBody(WorkflowExecutionSchema, fixed);
  // The same write reads it.
  fixedPart(body, fixed);
  return body;
}

/** Returns the columns that changes of an execution affect; its counts change with its actions. */
export function changingColumns(execution: WorkflowExecution) {
  const { metadata, spec, status } = execution;
  const session = spec?.session ?? "";
  return {
    phase: phaseOfExecution(execution),
    desired_phase: spec?.desiredPhase ?? 0,
    session,
    finished_at: timeColumn(metadata?.finishedAt),
    progress: status ? progressText(StatusSchema, { ...status, ...NO_COUNTS, phase: 0 }, session) : "{}",
  };
}

/** Returns an execution as the record shows it: without its counts, which change often. */
export function recordedExecution(execution: WorkflowExecution): JsonObject {
  const { status } = execution;
  const recorded = status ? { ...execution, status: { ...status, ...NO_COUNTS } } : execution;
  return toJsonObject(WorkflowExecutionSchema, recorded);
}

const NO_COUNTS = {
  pendingActionCount: 0,
  runningActionCount: 0,
  failedActionCount: 0,
  doneActionCount: 0,
  stoppedActionCount: 0,
};

/** Returns the text of an execution with its plan, as the record shows it. */
export function wholeBody(row: ExecutionRow, plan: string | null): string {
  const execution = executionOfRow(row);
  const recorded = recordedExecution(plan === null ? execution : withPlan(execution, planOfText(plan)));
  return JSON.stringify(recorded);
}
