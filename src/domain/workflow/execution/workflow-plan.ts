import { create } from "@bufbuild/protobuf";
import {
  type WorkflowAction,
  type WorkflowExecution,
  type WorkflowExecution_Spec,
  WorkflowExecution_SpecSchema,
} from "#gen/service/v1/workflow_pb.js";

/** The immutable part of an execution: its trigger, its action and its report. */
export type WorkflowPlan = Pick<WorkflowExecution_Spec, "trigger" | "action" | "report">;

/** Returns the plan of an execution, in a new message that shares its parts. */
export function planOf({ spec }: WorkflowExecution): WorkflowExecution_Spec {
  const plan = create(WorkflowExecution_SpecSchema);
  return spec ? withParts(plan, spec) : plan;
}

/**
 * Returns the execution without the potentially large parts of its plan: the trigger, and the
 * steps. It keeps the limits.
 */
export function withoutPlan(execution: WorkflowExecution): WorkflowExecution {
  const { spec } = execution;
  if (!spec) return execution;
  const { trigger: _, action, report, ...others } = spec;
  const limits = {
    ...(action && { action: withoutSteps(action) }),
    ...(report && { report: withoutSteps(report) }),
  };
  return { ...execution, spec: { ...others, ...limits } };
}

/** Returns the execution with its plan, whose parts it shares. */
export function withPlan(execution: WorkflowExecution, plan: WorkflowPlan): WorkflowExecution {
  const { spec } = execution;
  return spec ? { ...execution, spec: withParts(spec, plan) } : execution;
}

function withParts(spec: WorkflowExecution_Spec, { trigger, action, report }: WorkflowPlan) {
  return { ...spec, ...(trigger && { trigger }), ...(action && { action }), ...(report && { report }) };
}

function withoutSteps(action: WorkflowAction): WorkflowAction {
  return { ...action, steps: [] };
}
