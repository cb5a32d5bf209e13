import type { WorkflowError } from "#gen/service/v1/workflow_error_pb.js";
import {
  WorkflowExecutionActionPhase as Phase,
  type WorkflowExecutionAction,
} from "#gen/service/v1/workflow_pb.js";
import { phaseUnsuitable } from "../../error.ts";
import { deadlineOf } from "./workflow-action.ts";
import { endInPlace, timeError, transitionedAction } from "./workflow-action-transitions.ts";
import { addFailures, addWarnings, workflowError } from "./workflow-error.ts";
import { areAllDone, resetSteps, stepErrors } from "./workflow-step.ts";
import type { ActionEvent } from "./workflow-transitions.ts";

/** The way in which an action, or an attempt at it, ended. */
export type ActionEnd =
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly error: WorkflowError }
  | { readonly kind: "stopped" }
  | {
      readonly kind: "lost";
      readonly runnerId: string;
      readonly attempt: number;
      /** True when no other attempt follows. */
      readonly exhausted: boolean;
    };

/**
 * Returns the action after its end, or after the end of an attempt. The reported steps take
 * precedence over the way in which it ended: a failed step fails the action, and an action whose
 * steps were all done is done even when its runner was lost. A lost attempt is final when the
 * action is being stopped.
 * @throws DomainError PHASE_UNSUITABLE for an action that is reported done while a step is not
 */
export function endedAction(
  present: WorkflowExecutionAction,
  end: ActionEnd,
  warnings: readonly WorkflowError[],
  now: number,
): WorkflowExecutionAction {
  const lost = end.kind === "lost" ? [lostWarning(end)] : [];
  const { event, failures } = eventOf(present, end, now);
  return transitionedAction(present, event, (action, status) => {
    addWarnings(status, ...warnings, ...lost);
    if (event === "lose") return resetSteps(status.stepStatuses);
    addFailures(status, ...failures);
    endInPlace(action, status, now);
  });
}

interface Outcome {
  readonly event: ActionEvent;
  readonly failures: readonly WorkflowError[];
}

function eventOf(present: WorkflowExecutionAction, end: ActionEnd, now: number): Outcome {
  const steps = present.status?.stepStatuses ?? [];
  const known = stepErrors(steps);
  // Before the end of an action, only an exceeded maximum time adds failures.
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
    return failed(workflowError("stopped_by_runner", "the runner released the action before its end"));
  }
  if ((deadlineOf(present) ?? Number.POSITIVE_INFINITY) <= now) return failed(timeError(present));
  return end.exhausted ? failed(exhaustedError(end.attempt)) : { event: "lose", failures: [] };
}

function lostWarning({ runnerId, attempt }: ActionEnd & { kind: "lost" }): WorkflowError {
  return workflowError(
    "attempt_lost",
    `attempt ${attempt} was lost: its runner stopped reporting or returned it`,
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
