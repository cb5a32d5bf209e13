import { toJson } from "@bufbuild/protobuf";
import { AgentCodeContextSchema } from "#gen/service/v1/agent_pb.js";
import {
  WorkflowAction_Limits_PerExecutionSchema as LimitsSchema,
  WorkflowExecutionAction_StatusSchema as StatusSchema,
  type WorkflowExecutionAction,
  WorkflowExecutionActionPhase,
  WorkflowExecutionActionSchema,
} from "#gen/service/v1/workflow_pb.js";
import { deadlineOf, hasFailed, phaseOf } from "../../domain/workflow/execution/workflow-action.ts";
import { sharedFromBody } from "../json.ts";
import type { Found } from "../store.ts";
import { progressText, statusOfProgress, timeColumn, timeOfColumn } from "./workflow-progress.ts";
import type { WorkflowActionTable } from "./workflow-schema.ts";

/** An action that was found in the scope of the caller. */
export type FoundAction = Found<WorkflowExecutionAction, "workflow_action">;

/** The columns from which an action is read, without its texts, which may be long. */
export const ACTION_FACTS = [
  "id",
  "workflow_id",
  "execution_id",
  "is_report",
  "phase",
  "desired_phase",
  "session",
  "environment_id",
  "started_at",
  "finished_at",
  "attempt",
] as const;

/** The columns from which an action is read. */
export const ACTION_COLUMNS = [...ACTION_FACTS, "progress", "body"] as const;

export type ActionRow = Pick<WorkflowActionTable, (typeof ACTION_COLUMNS)[number]>;

/**
 * Returns an action without its steps, which all actions of an execution share:
 * domain/workflow/execution/workflow-action.ts adds them.
 */
export function actionOfRow(row: ActionRow): FoundAction {
  const fixed = fixedPart(row.body);
  if (!fixed.metadata || !fixed.spec) throw new Error(`the action ${row.id} has no metadata or no spec`);
  const [startedAt, finishedAt] = [timeOfColumn(row.started_at), timeOfColumn(row.finished_at)];
  const metadata = {
    ...fixed.metadata,
    workflowExecutionId: row.execution_id,
    workflowId: row.workflow_id,
    report: row.is_report === 1,
    ...(startedAt && { startedAt }),
    ...(finishedAt && { finishedAt }),
  };
  const session = row.session ?? "";
  const spec = { ...fixed.spec, session, desiredPhase: row.desired_phase };
  const status = statusOfProgress(StatusSchema, row.progress, session);
  for (const step of status.stepStatuses) step.failureMessage ||= step.error?.message ?? "";
  status.phase = row.phase;
  status.environmentId = row.environment_id ?? "";
  status.attempt = row.attempt;
  return { ...fixed, id: row.id, metadata, spec, status } as FoundAction;
}

/** Cached, since an action is read several times while it runs, and a workflow's executions have equal bodies. */
const fixedPart = sharedFromBody(WorkflowExecutionActionSchema);

/** Returns the text of the values of an action that never change and have no column. */
export function actionBody({ metadata, spec }: WorkflowExecutionAction): string {
  const { context, limits } = spec ?? {};
  return JSON.stringify({
    metadata: { actionName: metadata?.actionName },
    spec: {
      context: context && toJson(AgentCodeContextSchema, context),
      limits: limits && toJson(LimitsSchema, limits),
    },
  });
}

/** Returns the columns that an action's changes affect. */
export function changingColumns(action: WorkflowExecutionAction) {
  const { metadata, spec, status } = action;
  const phase = phaseOf(action);
  return {
    phase,
    desired_phase: spec?.desiredPhase ?? 0,
    session: spec?.session ?? "",
    failed: hasFailed(action) ? 1 : 0,
    environment_id: status?.environmentId || null,
    started_at: timeColumn(metadata?.startedAt),
    finished_at: timeColumn(metadata?.finishedAt),
    stops_at: phase === WorkflowExecutionActionPhase.RUNNING ? (deadlineOf(action) ?? null) : null,
    attempt: status?.attempt ?? 0,
    progress: actionProgress(action),
  };
}

/** Returns the text of the column `progress` of an action. */
export function actionProgress({ spec, status }: WorkflowExecutionAction): string {
  if (!status) return "{}";
  const stepStatuses = status.stepStatuses.map((step) =>
    step.error && step.failureMessage === step.error.message ? { ...step, failureMessage: "" } : step,
  );
  const rest = { ...status, stepStatuses, phase: 0, environmentId: "", attempt: 0 };
  return progressText(StatusSchema, rest, spec?.session ?? "");
}
