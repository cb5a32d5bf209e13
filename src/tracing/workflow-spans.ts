import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  WorkflowExecutionConclusion as Conclusion,
  WorkflowExecutionAction_Status_StepStatus_StepPhase as StepPhase,
  type WorkflowExecution,
  type WorkflowExecutionAction,
  type WorkflowStep,
} from "#gen/service/v1/workflow_pb.js";
import { spanIdOf, stepSpanId, type TraceParent } from "../domain/trace/trace-context.ts";
import { countedPhaseOf } from "../domain/workflow/execution/workflow-action.ts";
import { type Span, valueName } from "./span.ts";

/** Returns the span of an execution that has ended, as responses show it. */
export function executionSpan(
  organizationId: string,
  execution: WorkflowExecution,
  trace: TraceParent,
): Span {
  const { id, metadata, spec, status } = execution;
  const start = timeOf(metadata?.startedAt) ?? 0;
  const conclusion = status?.conclusion ?? Conclusion.UNSPECIFIED;
  return {
    traceId: trace.traceId,
    spanId: spanIdOf(id),
    parentSpanId: trace.parentSpanId,
    name: "execution",
    start,
    end: timeOf(metadata?.finishedAt) ?? start,
    attributes: {
      "chartroom.organization.id": organizationId,
      "chartroom.execution.id": id,
      "chartroom.workflow.id": metadata?.workflowId ?? "",
      "chartroom.trigger": spec?.trigger?.trigger.case ?? "manual",
      "chartroom.end": valueName(Conclusion, conclusion),
      "chartroom.actions.done": status?.doneActionCount ?? 0,
      "chartroom.actions.failed": status?.failedActionCount ?? 0,
      "chartroom.actions.stopped": status?.stoppedActionCount ?? 0,
    },
    hasFailed: (status?.failures.length ?? 0) > 0,
  };
}

/**
 * Returns the spans of an action that has ended, and of its steps. A step that never ran has none.
 * @param kinds what the steps of the action do
 */
export function actionSpans(
  action: WorkflowExecutionAction,
  kinds: readonly WorkflowStep["step"]["case"][],
  { traceId }: TraceParent,
): Span[] {
  const { id, metadata, status } = action;
  const executionId = metadata?.workflowExecutionId ?? "";
  const end = timeOf(metadata?.finishedAt) ?? 0;
  const how = countedPhaseOf(action);
  const ids = { "chartroom.execution.id": executionId, "chartroom.action.id": id };
  const whole: Span = {
    traceId,
    spanId: spanIdOf(id),
    parentSpanId: spanIdOf(executionId),
    name: "action",
    start: timeOf(metadata?.startedAt) ?? end,
    end,
    attributes: {
      ...ids,
      "chartroom.environment.id": status?.environmentId ?? "",
      "chartroom.action.report": metadata?.report ?? false,
      "chartroom.action.attempt": status?.attempt ?? 0,
      "chartroom.end": how,
    },
    hasFailed: how === "failed",
  };
  const steps = (status?.stepStatuses ?? []).flatMap((step, index): Span[] => {
    const start = timeOf(step.startedAt);
    if (start === undefined) return [];
    return [
      {
        traceId,
        spanId: stepSpanId(id, index),
        parentSpanId: whole.spanId,
        name: `step ${kinds[index] ?? "unknown"}`,
        start,
        end: timeOf(step.finishedAt) ?? end,
        attributes: {
          ...ids,
          "chartroom.step.index": index,
          "chartroom.end": valueName(StepPhase, step.phase),
        },
        hasFailed: step.phase === StepPhase.FAILED,
      },
    ];
  });
  return [whole, ...steps];
}

function timeOf(at: Timestamp | undefined): number | undefined {
  return at && timestampMs(at);
}
