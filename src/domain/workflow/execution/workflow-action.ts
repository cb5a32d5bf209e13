import { clone, create } from "@bufbuild/protobuf";
import { durationMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { AgentCodeContext } from "#gen/service/v1/agent_pb.js";
import {
  WorkflowExecutionActionPhase as Phase,
  type WorkflowExecution,
  type WorkflowExecutionAction,
  WorkflowExecutionActionSchema,
  type WorkflowStep,
  WorkflowStepSchema,
} from "#gen/service/v1/workflow_pb.js";
import { waitingSteps } from "./workflow-step.ts";

/** What a new action takes from its execution. */
export interface ActionTemplate {
  readonly id: string;
  readonly session: string;
  readonly name: string;
  /** Undefined for an empty workspace. */
  readonly context: AgentCodeContext | undefined;
  readonly report: boolean;
}

/** A new action of an execution, which waits for its turn. Its steps are those of {@link stepsOf}. */
export function newAction(execution: WorkflowExecution, template: ActionTemplate): WorkflowExecutionAction {
  const { id, session, name, context, report } = template;
  const limits = (report ? execution.spec?.report : execution.spec?.action)?.limits?.perExecution;
  const action = create(WorkflowExecutionActionSchema, {
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
  if (action.status) action.status.stepStatuses = waitingSteps(stepsOf(execution, action).length);
  return action;
}

/** The steps that an action carries out: the report's, or the action's, which an agent's prompt goes before. */
export function stepsOf(execution: WorkflowExecution, action: WorkflowExecutionAction): WorkflowStep[] {
  if (action.metadata?.report) return execution.spec?.report?.steps ?? [];
  const steps = execution.spec?.action?.steps ?? [];
  const context = execution.spec?.trigger?.context?.context;
  if (context?.case !== "agent") return steps;
  const prompt = create(WorkflowStepSchema, {
    step: { case: "agent", value: { prompt: context.value.prompt } },
  });
  return [prompt, ...steps];
}

/** The action with its steps in their statuses, as it is answered; rows leave out what all actions share. */
export function withSteps(
  action: WorkflowExecutionAction,
  execution: WorkflowExecution,
): WorkflowExecutionAction {
  const filled = clone(WorkflowExecutionActionSchema, action);
  const steps = stepsOf(execution, action);
  for (const status of filled.status?.stepStatuses ?? []) {
    const step = steps[status.stepIndex];
    if (step) status.step = step;
  }
  return filled;
}

/**
 * When the longest time of an action that has started is over, in milliseconds
 * since 1970 UTC. It is counted from its first attempt. Undefined without such a limit.
 */
export function deadlineOf({ metadata, spec }: WorkflowExecutionAction): number | undefined {
  const maxTimeMs = spec?.limits?.maxTime ? durationMs(spec.limits.maxTime) : 0;
  if (maxTimeMs === 0 || !metadata?.startedAt) return undefined;
  return timestampMs(metadata.startedAt) + maxTimeMs;
}

/** Which of its execution's counts an action is in. */
export type ActionCount = "pending" | "running" | "failed" | "done" | "stopped";

export function countedAs(action: WorkflowExecutionAction): ActionCount {
  const phase = phaseOf(action);
  if (phase === Phase.PENDING) return "pending";
  if (phase === Phase.STOPPED) return "stopped";
  if (phase !== Phase.DONE) return "running";
  return hasFailed(action) ? "failed" : "done";
}

/** Whether it came to its end with failures. */
export function hasFailed(action: WorkflowExecutionAction): boolean {
  return phaseOf(action) === Phase.DONE && (action.status?.failures.length ?? 0) > 0;
}

export function phaseOf({ status }: WorkflowExecutionAction): Phase {
  return status?.phase ?? Phase.UNSPECIFIED;
}
