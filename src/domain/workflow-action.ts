import { clone, create } from "@bufbuild/protobuf";
import { durationMs, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { AgentCodeContext } from "#gen/service/v1/agent_pb.js";
import type { WorkflowError } from "#gen/service/v1/workflow_error_pb.js";
import {
  WorkflowExecutionActionPhase as Phase,
  type WorkflowExecution,
  type WorkflowExecutionAction,
  type WorkflowExecutionAction_Status,
  WorkflowExecutionActionSchema,
  type WorkflowStep,
  WorkflowStepSchema,
} from "#gen/service/v1/workflow_pb.js";
import { phaseUnsuitable } from "./error.ts";
import { addFailures, addWarnings, workflowError } from "./workflow-error.ts";
import { type ActionEvent, isFinalAction, movedAction } from "./workflow-moves.ts";
import { areAllDone, cancelSteps, resetSteps, stepErrors, waitingSteps } from "./workflow-step.ts";

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

/** The action as a runner takes it on, as of `now` (milliseconds since 1970 UTC). */
export function begunAction(
  present: WorkflowExecutionAction,
  { environmentId, attempt, now }: { environmentId: string; attempt: number; now: number },
): WorkflowExecutionAction {
  return moved(present, "begin", (action, status) => {
    if (action.metadata) action.metadata.startedAt ??= timestampFromMs(now);
    status.environmentId = environmentId;
    status.attempt = attempt;
  });
}

/** How an action, or an attempt at it, came to its end. */
export type ActionEnd =
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly error: WorkflowError }
  | { readonly kind: "stopped" }
  | {
      readonly kind: "lost";
      readonly runnerId: string;
      readonly attempt: number;
      /** Whether no other attempt follows. */
      readonly exhausted: boolean;
    };

/**
 * The action after its end, or after that of an attempt. What was reported of
 * the steps decides before the way in which it ended: a failed step fails the
 * action, and of an action whose steps were all done a lost runner costs
 * nothing. An attempt is lost for good when the action is being stopped.
 *
 * @throws DomainError PHASE_UNSUITABLE for one that is said to be done while a step is not
 */
export function endedAction(
  present: WorkflowExecutionAction,
  end: ActionEnd,
  warnings: readonly WorkflowError[],
  now: number,
): WorkflowExecutionAction {
  const lost = end.kind === "lost" ? [lostWarning(end)] : [];
  const { event, failures } = eventOf(present, end, now);
  return moved(present, event, (action, status) => {
    addWarnings(status, ...warnings, ...lost);
    if (event === "lose") return resetSteps(status.stepStatuses);
    addFailures(status, ...failures);
    finish(action, status, now);
  });
}

/** The action after it was cancelled: stopping when a runner has it. Undefined when there is nothing to cancel. */
export function cancelledAction(
  present: WorkflowExecutionAction,
  session: string,
  now: number,
): WorkflowExecutionAction | undefined {
  const phase = phaseOf(present);
  if (phase === Phase.STOPPING || isFinalAction(phase)) return undefined;
  if (phase === Phase.PENDING) return cutOffAction(present, session, now);
  return moved(present, "cancel", (action) => wantStopped(action, session));
}

/** The action stopped at once, whoever works on it. Undefined when it has ended. */
export function cutOffAction(
  present: WorkflowExecutionAction,
  session: string,
  now: number,
): WorkflowExecutionAction | undefined {
  if (isFinalAction(phaseOf(present))) return undefined;
  return moved(present, "stop", (action, status) => {
    wantStopped(action, session);
    finish(action, status, now);
  });
}

/** The action once its longest time is over: it is stopped, and will have failed. Undefined when it is not running. */
export function expiredAction(present: WorkflowExecutionAction): WorkflowExecutionAction | undefined {
  if (phaseOf(present) !== Phase.RUNNING) return undefined;
  return moved(present, "expire", (action, status) => addFailures(status, timeError(action)));
}

/** The action with one more warning; undefined when it has one of that reason. */
export function warnedAction(
  present: WorkflowExecutionAction,
  warning: WorkflowError,
): WorkflowExecutionAction | undefined {
  if (present.status?.warnings.some(({ reason }) => reason === warning.reason)) return undefined;
  const action = clone(WorkflowExecutionActionSchema, present);
  if (action.status) addWarnings(action.status, warning);
  return action;
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
export type Tally = "pending" | "running" | "failed" | "done" | "stopped";

export function tallyOf(action: WorkflowExecutionAction): Tally {
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

interface Outcome {
  readonly event: ActionEvent;
  readonly failures: readonly WorkflowError[];
}

function eventOf(present: WorkflowExecutionAction, end: ActionEnd, now: number): Outcome {
  const steps = present.status?.stepStatuses ?? [];
  const known = stepErrors(steps);
  // Failures come before the end of an action only with the end of its time.
  const isTimeOver = (present.status?.failures.length ?? 0) > 0;
  const failed = (...failures: WorkflowError[]): Outcome => ({ event: "fail", failures });
  if (end.kind === "failed") {
    if (isTimeOver) return failed();
    return known.length > 0 ? failed(...known) : failed(end.error);
  }
  if (areAllDone(steps)) return isTimeOver ? failed() : { event: "finish", failures: [] };
  if (end.kind === "done" && known.length === 0) {
    throw phaseUnsuitable("step", "PENDING", "the action is not done: a step of it is not");
  }
  if (end.kind !== "done" && present.spec?.desiredPhase === Phase.STOPPED) {
    return { event: "stop", failures: [] };
  }
  if (isTimeOver) return failed();
  if (known.length > 0) return failed(...known);
  if (end.kind !== "lost") {
    return failed(workflowError("stopped_by_runner", "the runner let go of the action before its end"));
  }
  if ((deadlineOf(present) ?? Number.POSITIVE_INFINITY) <= now) return failed(timeError(present));
  return end.exhausted ? failed(exhaustedError(end.attempt)) : { event: "lose", failures: [] };
}

function moved(
  present: WorkflowExecutionAction,
  event: ActionEvent,
  change: (action: WorkflowExecutionAction, status: WorkflowExecutionAction_Status) => void,
): WorkflowExecutionAction {
  const action = clone(WorkflowExecutionActionSchema, present);
  const { status } = action;
  if (!status) throw new Error(`the action ${present.id} has no status`);
  status.phase = movedAction(status.phase, event);
  change(action, status);
  status.session = action.spec?.session ?? "";
  return action;
}

function wantStopped({ spec }: WorkflowExecutionAction, session: string): void {
  if (!spec || spec.desiredPhase === Phase.STOPPED) return;
  spec.desiredPhase = Phase.STOPPED;
  spec.session = session;
}

function finish(
  { metadata }: WorkflowExecutionAction,
  { stepStatuses }: WorkflowExecutionAction_Status,
  now: number,
): void {
  cancelSteps(stepStatuses, now);
  if (metadata) metadata.finishedAt = timestampFromMs(now);
}

function lostWarning({ runnerId, attempt }: ActionEnd & { kind: "lost" }): WorkflowError {
  return workflowError(
    "attempt_lost",
    `attempt ${attempt} was lost: its runner fell silent or gave it back`,
    {
      runner_id: runnerId,
      attempt: String(attempt),
    },
  );
}

function exhaustedError(attempt: number): WorkflowError {
  return workflowError("attempts_exhausted", `its runner was lost in each of ${attempt} attempts`, {
    attempt: String(attempt),
  });
}

function timeError({ spec }: WorkflowExecutionAction): WorkflowError {
  const seconds = spec?.limits?.maxTime ? durationMs(spec.limits.maxTime) / 1000 : 0;
  return workflowError("max_time_exceeded", `the action took longer than ${seconds} s, which is its limit`, {
    max_time_seconds: String(seconds),
  });
}
