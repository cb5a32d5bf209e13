import { clone, create } from "@bufbuild/protobuf";
import { durationMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { AgentCodeContext } from "#gen/service/v1/agent_pb.js";
import {
  WorkflowExecutionActionPhase as Phase,
  WorkflowExecutionAction_Status_StepStatus_StepPhase as StepPhase,
  type WorkflowExecution,
  type WorkflowExecutionAction,
  WorkflowExecutionActionSchema,
  type WorkflowStep,
  WorkflowStepSchema,
} from "#gen/service/v1/workflow_pb.js";
import { stepStatusesIn } from "./workflow-step.ts";
import { isFinalAction } from "./workflow-transitions.ts";

/** The values that a new action gets from its execution. */
export interface ActionTemplate {
  readonly id: string;
  readonly session: string;
  readonly name: string;
  /** Undefined for an empty workspace. */
  readonly context: AgentCodeContext | undefined;
  readonly report: boolean;
}

/**
 * Returns a new action of an execution, which is pending. Its steps are those of {@link stepsOf}; it
 * gets their statuses when it begins.
 */
export function newAction(execution: WorkflowExecution, template: ActionTemplate): WorkflowExecutionAction {
  const { id, session, name, context, report } = template;
  const limits = (report ? execution.spec?.report : execution.spec?.action)?.limits?.perExecution;
  return create(WorkflowExecutionActionSchema, {
    id,
    metadata: {
      workflowExecutionId: execution.id,
      workflowId: execution.metadata?.workflowId ?? "",
      actionName: name,
      report,
    },
    spec: { session, desiredPhase: Phase.DONE, ...(context && { context }), ...(limits && { limits }) },
    status: { session, phase: Phase.PENDING },
  });
}

/**
 * Returns the steps that an action carries out: the report's, or the action's after the agent's
 * prompt, if any.
 */
export function stepsOf(
  execution: WorkflowExecution,
  { metadata }: { readonly metadata?: { readonly report: boolean } | undefined },
): WorkflowStep[] {
  if (metadata?.report) return execution.spec?.report?.steps ?? [];
  const steps = execution.spec?.action?.steps ?? [];
  const context = execution.spec?.trigger?.context?.context;
  if (context?.case !== "agent") return steps;
  const prompt = create(WorkflowStepSchema, {
    step: { case: "agent", value: { prompt: context.value.prompt } },
  });
  return [prompt, ...steps];
}

/**
 * Returns the action with its steps, as responses show it. Rows leave out their content, which all
 * actions share, and the statuses of an action that has not begun: they would be most of the row.
 */
export function withSteps(
  action: WorkflowExecutionAction,
  execution: WorkflowExecution,
): WorkflowExecutionAction {
  const filled = clone(WorkflowExecutionActionSchema, action);
  const { status } = filled;
  if (!status) return filled;
  const steps = stepsOf(execution, action);
  if (status.stepStatuses.length === 0) {
    const phase = isFinalAction(status.phase) ? StepPhase.CANCELLED : StepPhase.PENDING;
    status.stepStatuses = stepStatusesIn(phase, steps.length);
  }
  for (const stepStatus of status.stepStatuses) {
    const step = steps[stepStatus.stepIndex];
    if (step) stepStatus.step = step;
  }
  return filled;
}

/**
 * Returns the end of a started action's maximum time, in milliseconds since 1970 UTC. It is counted
 * from the first attempt, without the waits for approvals. Undefined without such a limit.
 */
export function deadlineOf({ metadata, spec, status }: WorkflowExecutionAction): number | undefined {
  const maxTimeMs = spec?.limits?.maxTime ? durationMs(spec.limits.maxTime) : 0;
  if (maxTimeMs === 0 || !metadata?.startedAt) return undefined;
  return timestampMs(metadata.startedAt) + maxTimeMs + (status?.waited ? durationMs(status.waited) : 0);
}

/** The count of its execution that an action belongs to. */
export type CountedPhase = "pending" | "running" | "failed" | "done" | "stopped";

export function countedPhaseOf(action: WorkflowExecutionAction): CountedPhase {
  const phase = phaseOf(action);
  if (phase === Phase.PENDING) return "pending";
  if (phase === Phase.STOPPED) return "stopped";
  if (phase !== Phase.DONE) return "running";
  return hasFailed(action) ? "failed" : "done";
}

/** Returns whether it ended with failures. */
export function hasFailed(action: WorkflowExecutionAction): boolean {
  return phaseOf(action) === Phase.DONE && (action.status?.failures.length ?? 0) > 0;
}

export function phaseOf({ status }: WorkflowExecutionAction): Phase {
  return status?.phase ?? Phase.UNSPECIFIED;
}
