import { clone, create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import type { WorkflowError } from "#gen/service/v1/workflow_error_pb.js";
import {
  WorkflowExecutionPhase as Phase,
  type WorkflowAction,
  type WorkflowExecution,
  type WorkflowExecution_Status,
  WorkflowExecutionSchema,
  type WorkflowExecutionTrigger,
} from "#gen/service/v1/workflow_pb.js";
import { fold } from "../../text/fold.ts";
import type { TraceParent } from "../../trace/trace-context.ts";
import { addFailures, addWarnings } from "./workflow-error.ts";
import { type ExecutionEvent, isFinalExecution, transitionExecution } from "./workflow-transitions.ts";

/** The values of a new execution: copies, with the parameters inserted. */
export interface ExecutionTemplate {
  readonly id: string;
  readonly session: string;
  readonly workflowId: string;
  readonly creator: Subject;
  readonly executor: Subject;
  readonly trigger: WorkflowExecutionTrigger;
  readonly action: WorkflowAction | undefined;
  readonly report: WorkflowAction | undefined;
  readonly warnings: readonly WorkflowError[];
  /** Id of the execution that this one retries; empty for none. */
  readonly retriedExecutionId: string;
  /** The trace that it belongs to; undefined for none. */
  readonly trace?: TraceParent | undefined;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
}

/** Returns a new execution, which has no actions yet. */
export function newExecution(template: ExecutionTemplate): WorkflowExecution {
  const { id, session, workflowId, creator, executor, trigger, action, report, now } = template;
  const execution = create(WorkflowExecutionSchema, {
    id,
    metadata: {
      workflowId,
      startedAt: timestampFromMs(now),
      creator,
      executor,
      retriedExecutionId: template.retriedExecutionId,
      ...(template.trace && { trace: template.trace }),
    },
    spec: {
      session,
      desiredPhase: Phase.COMPLETED,
      trigger,
      ...(action && { action }),
      ...(report && { report }),
    },
    status: { session, phase: Phase.PENDING },
  });
  if (execution.status) addWarnings(execution.status, ...template.warnings);
  return execution;
}

/**
 * Returns the execution after a runner was assigned one of its actions; undefined when it was already
 * running.
 */
export function begunExecution(present: WorkflowExecution): WorkflowExecution | undefined {
  return phaseOfExecution(present) === Phase.PENDING ? transitionedExecution(present, "begin") : undefined;
}

/** Returns the execution after its end; with failures it failed as a whole. */
export function completedExecution(
  present: WorkflowExecution,
  failures: readonly WorkflowError[],
  now: number,
): WorkflowExecution {
  return transitionedExecution(present, "complete", (execution, status) => {
    addFailures(status, ...failures);
    finish(execution, now);
  });
}

/**
 * Returns the execution after it was cancelled: stopped at once when none of its actions runs.
 * Undefined when it has ended or is being stopped.
 */
export function cancelledExecution(
  present: WorkflowExecution,
  { session, isRunning, now }: { session: string; isRunning: boolean; now: number },
): WorkflowExecution | undefined {
  const phase = phaseOfExecution(present);
  if (phase === Phase.STOPPING || isFinalExecution(phase)) return undefined;
  return transitionedExecution(present, isRunning ? "cancel" : "stop", (execution) => {
    if (execution.spec) {
      execution.spec.desiredPhase = Phase.STOPPED;
      execution.spec.session = session;
    }
    if (!isRunning) finish(execution, now);
  });
}

/**
 * Returns the execution while it is being cancelled in several transactions: to be stopped, so
 * that it hands out no more work, although some of its actions are still pending.
 */
export function stoppingExecution(present: WorkflowExecution, session: string): WorkflowExecution {
  const execution = clone(WorkflowExecutionSchema, present);
  const { spec, status } = execution;
  if (!spec || !status) throw new Error(`the execution ${present.id} has no spec or no status`);
  spec.desiredPhase = Phase.STOPPED;
  spec.session = session;
  if (status.phase === Phase.RUNNING) status.phase = transitionExecution(status.phase, "cancel");
  status.session = session;
  return execution;
}

/** Returns whether all of its actions were cancelled one by one, so that none was done and none failed. */
export function isStoppedByActions(execution: WorkflowExecution): boolean {
  const stopped = execution.status?.stoppedActionCount ?? 0;
  return stopped > 0 && stopped === totalActionCount(execution);
}

/** Returns a cancelled execution after the last of its actions was released, or one whose actions were all cancelled. */
export function stoppedExecution(present: WorkflowExecution, now: number): WorkflowExecution {
  return transitionedExecution(present, "stop", (execution) => finish(execution, now));
}

/** Returns the execution with more warnings. */
export function warnedExecution(
  present: WorkflowExecution,
  warnings: readonly WorkflowError[],
): WorkflowExecution {
  const execution = clone(WorkflowExecutionSchema, present);
  if (execution.status) addWarnings(execution.status, ...warnings);
  return execution;
}

export function phaseOfExecution({ status }: WorkflowExecution): Phase {
  return status?.phase ?? Phase.UNSPECIFIED;
}

/** Returns whether it has ended, so that nothing changes it any more. */
export function hasEnded(execution: WorkflowExecution): boolean {
  return isFinalExecution(phaseOfExecution(execution));
}

/** Returns whether it is, or was, cancelled. */
export function isCancelled({ spec }: WorkflowExecution): boolean {
  return spec?.desiredPhase === Phase.STOPPED;
}

/** Returns the number of its actions in any phase. */
export function totalActionCount({ status }: WorkflowExecution): number {
  if (!status) return 0;
  const { pendingActionCount, runningActionCount, failedActionCount } = status;
  return (
    pendingActionCount +
    runningActionCount +
    failedActionCount +
    status.doneActionCount +
    status.stoppedActionCount
  );
}

/**
 * Returns the text that `search` looks through: one folded line each for id and the workflow's name
 * at the start.
 */
export function executionSearchText(id: string, workflowName: string): string {
  return fold([id, workflowName].join("\n"));
}

function transitionedExecution(
  present: WorkflowExecution,
  event: ExecutionEvent,
  change: (execution: WorkflowExecution, status: WorkflowExecution_Status) => void = () => undefined,
): WorkflowExecution {
  const execution = clone(WorkflowExecutionSchema, present);
  const { status } = execution;
  if (!status) throw new Error(`the execution ${present.id} has no status`);
  status.phase = transitionExecution(status.phase, event);
  change(execution, status);
  status.session = execution.spec?.session ?? "";
  return execution;
}

function finish({ metadata }: WorkflowExecution, now: number): void {
  if (metadata) metadata.finishedAt = timestampFromMs(now);
}
