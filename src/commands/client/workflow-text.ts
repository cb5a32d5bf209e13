import { toJson } from "@bufbuild/protobuf";
import type { WorkflowError } from "#gen/service/v1/workflow_error_pb.js";
import {
  WorkflowExecutionActionPhase as ActionPhase,
  WorkflowExecutionConclusion as Conclusion,
  WorkflowExecutionPhase as ExecutionPhase,
  type Workflow,
  type WorkflowExecution,
  type WorkflowExecutionAction,
  WorkflowExecutionActionSchema,
  WorkflowExecutionSchema,
  WorkflowSchema,
} from "#gen/service/v1/workflow_pb.js";
import { table } from "../terminal/table.ts";
import { enumWords, jsonText, printable, timeOf } from "./printable.ts";
import type { Shown } from "./workflow.ts";

/** Returns workflows as a table for people. */
export function workflowTable(workflows: readonly Workflow[], maxWidth?: number): string {
  if (workflows.length === 0) return "no workflows\n";
  const rows = workflows.map(({ id, metadata, spec }) => [
    id,
    stateOf(spec),
    timeOf(metadata?.createdAt),
    metadata?.name ?? "",
  ]);
  return table(["WORKFLOW", "STATE", "CREATED (UTC)", "NAME"], rows, maxWidth);
}

/** Returns workflows as a JSON list of service.v1.Workflow. */
export function workflowsJson(workflows: readonly Workflow[]): string {
  return jsonText(workflows.map((workflow) => toJson(WorkflowSchema, workflow)));
}

/** Returns a found workflow or execution, as text for people. */
export function shownText(shown: Shown, maxWidth?: number): string {
  if ("execution" in shown) return executionText(shown.execution) + actionTable(shown.actions, maxWidth);
  const { id, metadata, spec, webhookUrl } = shown.workflow;
  const triggers = spec?.triggers.map(({ trigger }) => trigger.case ?? "").join(", ") ?? "";
  const facts = factLines([
    ["workflow", id],
    ["name", metadata?.name],
    ["description", metadata?.description],
    ["state", stateOf(spec)],
    ["created", timeOf(metadata?.createdAt)],
    ["triggers", triggers],
    ["parameters", spec?.parameters.map(({ key }) => key).join(", ")],
    ["steps", `${spec?.action?.steps.length ?? 0}`],
    ["webhook", webhookUrl],
  ]);
  const rows = shown.executions.map((execution) => [
    execution.id,
    stateOfExecution(execution),
    timeOf(execution.metadata?.startedAt),
    timeOf(execution.metadata?.finishedAt),
  ]);
  const executions = table(["EXECUTION", "STATE", "STARTED (UTC)", "FINISHED (UTC)"], rows, maxWidth);
  return `${facts}\n${rows.length === 0 ? "no executions\n" : executions}`;
}

/** Returns what was found as JSON: a workflow with its executions, or an execution with its actions. */
export function shownJson(shown: Shown): string {
  if ("execution" in shown) {
    return jsonText({
      workflowExecution: toJson(WorkflowExecutionSchema, shown.execution),
      actions: shown.actions.map((action) => toJson(WorkflowExecutionActionSchema, action)),
    });
  }
  return jsonText({
    workflow: toJson(WorkflowSchema, shown.workflow),
    workflowExecutions: shown.executions.map((execution) => toJson(WorkflowExecutionSchema, execution)),
  });
}

/** Returns the state of an execution, such as `running` or `partially failed`. */
export function stateOfExecution({ status }: WorkflowExecution): string {
  const conclusion = status?.conclusion ?? Conclusion.UNSPECIFIED;
  if (conclusion !== Conclusion.UNSPECIFIED) return enumWords(Conclusion[conclusion]);
  return enumWords(ExecutionPhase[status?.phase ?? 0]);
}

/** Returns the state of an action. */
export function stateOfAction({ status }: WorkflowExecutionAction): string {
  const failed = (status?.failures.length ?? 0) > 0;
  const isOver = status?.phase === ActionPhase.DONE || status?.phase === ActionPhase.STOPPED;
  return failed && isOver ? "failed" : enumWords(ActionPhase[status?.phase ?? 0]);
}

/** Returns actions as a table for people. */
function actionTable(actions: readonly WorkflowExecutionAction[], maxWidth?: number): string {
  if (actions.length === 0) return "no actions\n";
  const rows = actions.map((action) => [
    action.id,
    stateOfAction(action),
    `${action.status?.stepStatuses.filter(({ finishedAt }) => finishedAt).length ?? 0}/${action.status?.stepStatuses.length ?? 0}`,
    action.metadata?.actionName ?? "",
    errorText(action.status?.failures ?? []),
  ]);
  return table(["ACTION", "STATE", "STEPS", "NAME", "FAILURE"], rows, maxWidth);
}

/** Returns errors, one sentence each. */
export function errorText(errors: readonly WorkflowError[]): string {
  return errors.map(({ message }) => message).join("; ");
}

function executionText(execution: WorkflowExecution): string {
  const { id, metadata, status } = execution;
  const facts = factLines([
    ["execution", id],
    ["workflow", metadata?.workflowId],
    ["state", stateOfExecution(execution)],
    ["started", timeOf(metadata?.startedAt)],
    ["finished", timeOf(metadata?.finishedAt)],
    ["goes on with", metadata?.retriedExecutionId],
    ["failures", errorText(status?.failures ?? [])],
    ["warnings", errorText(status?.warnings ?? [])],
  ]);
  return `${facts}\n`;
}

function factLines(facts: readonly (readonly [string, string | undefined])[]): string {
  const lines = facts.flatMap(([name, value]) => (value ? [`${name.padEnd(13)} ${value}\n`] : []));
  return printable(lines.join(""));
}

function stateOf(spec: Workflow["spec"]): string {
  if (spec?.deleting) return "deleting";
  return spec?.disabled ? "disabled" : "enabled";
}
