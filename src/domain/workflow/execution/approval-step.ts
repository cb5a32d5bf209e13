import { clone, create } from "@bufbuild/protobuf";
import { durationFromMs, durationMs, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type Approval,
  type ApprovalDeciders,
  ApprovalStepSchema,
  ApprovalState as State,
} from "#gen/service/v1/approval_pb.js";
import type { WorkflowError } from "#gen/service/v1/workflow_error_pb.js";
import {
  WorkflowExecutionActionPhase as Phase,
  WorkflowExecutionAction_Status_StepStatus_StepPhase as StepPhase,
  type WorkflowExecutionAction,
  WorkflowExecutionActionSchema,
  type WorkflowStep,
  type WorkflowStep_Approval,
} from "#gen/service/v1/workflow_pb.js";
import { type ApprovalContent, approvalContent } from "../../approval/approval.ts";
import { phaseUnsuitable } from "../../error.ts";
import { STEP_DECIDERS } from "../../policy/approval-policy.ts";
import type { Policies } from "../../policy/policies.ts";
import { withoutDeceptiveText } from "../../text/deceptive-text.ts";
import { pullRequestAt } from "./step-push.ts";
import { phaseOf } from "./workflow-action.ts";
import { transitionedAction } from "./workflow-action-transitions.ts";
import { addWarnings, workflowError } from "./workflow-error.ts";
import { failStep, lastMoveOf, resetSteps, stepStatusesIn } from "./workflow-step.ts";
import { transitionStep } from "./workflow-transitions.ts";

type Action = WorkflowExecutionAction;

/** Returns the index of the first step that is not done; the number of steps when all are. */
export function nextStepOf({ status }: Action): number {
  const statuses = status?.stepStatuses ?? [];
  const next = statuses.findIndex(({ phase }) => phase !== StepPhase.DONE);
  return next < 0 ? statuses.length : next;
}

/** Returns the approval step at an index; undefined if there is no approval step there. */
export function approvalAt(steps: readonly WorkflowStep[], index: number): WorkflowStep_Approval | undefined {
  const step = steps[index]?.step;
  return step?.case === "approval" ? step.value : undefined;
}

/**
 * Requires that every server that may lease out an action knows approval steps.
 * @throws DomainError PHASE_UNSUITABLE
 */
export function requireApprovalStepsKnown(areKnown: boolean): void {
  if (areKnown) return;
  const message = "approval steps can be written once every server runs this release";
  throw phaseUnsuitable("installation", "UPGRADING", message);
}

/** Returns the steps that a runner gets: all up to and including the first approval step at or after `first`. */
export function stepsToHandOut(steps: readonly WorkflowStep[], first: number): WorkflowStep[] {
  const next = steps.findIndex(({ step }, index) => index >= first && step.case === "approval");
  return next < 0 ? [...steps] : steps.slice(0, next + 1);
}

/**
 * Returns whether the environment of a pending action has results of its steps: a runner has carried out some, or has
 * reached a pullRequest step.
 */
export function hasWorkspace({ status }: Action, steps: readonly WorkflowStep[]): boolean {
  return (status?.stepStatuses ?? []).some(
    ({ phase, stepIndex }) =>
      (phase === StepPhase.DONE || phase === StepPhase.RUNNING) && !approvalAt(steps, stepIndex),
  );
}

/** Returns whether an action waits for people, or has not continued yet after they approved a push. */
export function isAsking(action: Action): boolean {
  const statuses = action.status?.stepStatuses ?? [];
  return phaseOf(action) === Phase.PENDING && statuses.some(({ phase }) => phase === StepPhase.RUNNING);
}

/**
 * Returns the approval request of an approval step.
 * @param message the step's message with parameters inserted
 */
export function stepRequest(action: Action, stepIndex: number, message: string): ApprovalContent {
  const value = create(ApprovalStepSchema, {
    message: withoutDeceptiveText(message),
    actionName: action.metadata?.actionName ?? "",
    workflowExecutionId: action.metadata?.workflowExecutionId ?? "",
    workflowActionId: action.id,
    stepIndex,
  });
  return approvalContent({ case: "step", value });
}

/** The deciders of an approval step, and the path of the policy that names them; empty if the step names them. */
export interface StepDeciders {
  readonly deciders: ApprovalDeciders | undefined;
  readonly policyFieldPath: string;
}

/** Returns the deciders of an approval step: those that the policy names, or else those that the step names. */
export function decidersOfStep({ effective }: Policies, { deciders }: WorkflowStep_Approval): StepDeciders {
  const chosen = effective.agentPolicy?.approvals?.steps?.deciders;
  if (chosen) return { deciders: chosen, policyFieldPath: STEP_DECIDERS };
  return { deciders, policyFieldPath: "" };
}

/**
 * Returns the action after its runner has released it because people must approve the next step, or its push.
 * @param asksToPush true when a pullRequest step asks for approval of its push
 * @throws DomainError PHASE_UNSUITABLE when the next step is of another kind
 */
export function pausedAction(
  present: Action,
  steps: readonly WorkflowStep[],
  warnings: readonly WorkflowError[],
  asksToPush = false,
): Action {
  const index = nextStepOf(present);
  const phase = present.status?.stepStatuses[index]?.phase ?? StepPhase.UNSPECIFIED;
  const mayWait = asksToPush
    ? pullRequestAt(steps, index) && phase === StepPhase.RUNNING
    : approvalAt(steps, index);
  if (!mayWait) {
    const wanted = asksToPush ? "pullRequest step that runs" : "approval";
    const message = `the action need not wait: step ${index} is no ${wanted}`;
    throw phaseUnsuitable("step", StepPhase[phase] ?? "", message);
  }
  return transitionedAction(present, "wait", (_, status) => addWarnings(status, ...warnings));
}

/** Returns the action while people decide its next step. */
export function askingAction(present: Action, stepCount: number, now: number): Action {
  return withStatus(present, (status) => {
    if (status.stepStatuses.length === 0) status.stepStatuses = stepStatusesIn(StepPhase.PENDING, stepCount);
    const step = status.stepStatuses[nextStepOf(present)];
    if (!step || step.phase === StepPhase.RUNNING) return;
    step.phase = transitionStep(step.phase, "begin");
    step.startedAt = timestampFromMs(Math.max(now, lastMoveOf(status.stepStatuses)));
  });
}

/**
 * Returns the action after people have decided the step that it waits for: the step is done, or has failed.
 * @param digest digest of the step's present request
 */
export function decidedAction(present: Action, approval: Approval, digest: string, now: number): Action {
  return withStatus(present, (status, action) => {
    const step = status.stepStatuses[nextStepOf(present)];
    if (!step) return;
    const error = refusal(approval, digest, "the step");
    if (error) return failStep(step, error, now);
    step.phase = transitionStep(step.phase, "finish");
    step.finishedAt = timestampFromMs(now);
    if (action.metadata?.startedAt && step.startedAt) addWait(status, timestampMs(step.startedAt), now);
  });
}

/**
 * Returns the action after people have decided the push of its next step, or nobody did in time: the step continues or
 * has failed.
 */
export function decidedPush(present: Action, approval: Approval, now: number): Action {
  return withStatus(present, (status) => {
    const step = status.stepStatuses[nextStepOf(present)];
    if (!step) return;
    const error = refusal(approval, approval.digest, "the push");
    if (error) return failStep(step, error, now);
    if (approval.createdAt) addWait(status, timestampMs(approval.createdAt), now);
  });
}

/** Excludes a wait from the action's maximum time, in place. */
function addWait(status: NonNullable<Action["status"]>, since: number, now: number): void {
  const before = status.waited ? durationMs(status.waited) : 0;
  status.waited = durationFromMs(before + Math.max(0, now - since));
}

function refusal(
  { id, state, reason, digest: decided }: Approval,
  digest: string,
  what: string,
): WorkflowError | undefined {
  const meta = { approval_id: id };
  if (state === State.APPROVED && decided === digest) return undefined;
  if (state === State.APPROVED)
    return workflowError("approval_changed", "what was approved is not what the step asks for", meta);
  if (state === State.EXPIRED)
    return workflowError("approval_expired", `nobody approved ${what} in time`, meta);
  return workflowError("approval_denied", `${what} was not approved${reason && `: ${reason}`}`, meta);
}

/** Returns the action done by the approval of its last step. */
export function passedAction(present: Action, now: number): Action {
  return transitionedAction(present, "pass", ({ metadata }) => {
    if (metadata) metadata.finishedAt = timestampFromMs(now);
  });
}

/** Returns an action whose steps begin again because its environment was removed while it waited. */
export function rewoundAction(present: Action): Action {
  return withStatus(present, (status) => {
    resetSteps(status.stepStatuses);
    const warning = workflowError(
      "workspace_lost",
      "the environment was removed while the action waited for an approval: its steps begin again",
    );
    if (!status.warnings.some(({ reason }) => reason === warning.reason)) addWarnings(status, warning);
  });
}

function withStatus(
  present: Action,
  change: (status: NonNullable<Action["status"]>, action: Action) => void,
): Action {
  const action = clone(WorkflowExecutionActionSchema, present);
  if (!action.status) throw new Error(`the action ${present.id} has no status`);
  change(action.status, action);
  return action;
}
