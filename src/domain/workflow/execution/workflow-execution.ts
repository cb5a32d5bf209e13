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
import { fold } from "../../fold.ts";
import { addFailures, addWarnings } from "./workflow-error.ts";
import { type ExecutionEvent, isFinalExecution, transitionExecution } from "./workflow-transitions.ts";

/** What a new execution is made of: copies, with the parameters in them. */
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
  /** Empty for one that no retry started. */
  readonly retriedExecutionId: string;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
}

/** A new execution, which has no actions yet. */
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

/** The execution once an action of it was taken on; undefined when it was before. */
export function begunExecution(present: WorkflowExecution): WorkflowExecution | undefined {
  return phaseOfExecution(present) === Phase.PENDING ? moved(present, "begin") : undefined;
}

/** The execution after its end; with failures it failed as a whole. */
export function completedExecution(
  present: WorkflowExecution,
  failures: readonly WorkflowError[],
  now: number,
): WorkflowExecution {
  return moved(present, "complete", (execution, status) => {
    addFailures(status, ...failures);
    finish(execution, now);
  });
}

/**
 * The execution after it was cancelled: stopped at once when no action of it
 * runs. Undefined when it has ended or is being stopped.
 */
export function cancelledExecution(
  present: WorkflowExecution,
  { session, isRunning, now }: { session: string; isRunning: boolean; now: number },
): WorkflowExecution | undefined {
  const phase = phaseOfExecution(present);
  if (phase === Phase.STOPPING || isFinalExecution(phase)) return undefined;
  return moved(present, isRunning ? "cancel" : "stop", (execution) => {
    if (execution.spec) {
      execution.spec.desiredPhase = Phase.STOPPED;
      execution.spec.session = session;
    }
    if (!isRunning) finish(execution, now);
  });
}

/**
 * The execution as it is while it is cancelled in several transactions: wanted
 * stopped, so that it gives out no more, although actions of it still wait.
 */
export function unwantedExecution(present: WorkflowExecution, session: string): WorkflowExecution {
  const execution = clone(WorkflowExecutionSchema, present);
  const { spec, status } = execution;
  if (!spec || !status) throw new Error(`the execution ${present.id} has no spec or no status`);
  spec.desiredPhase = Phase.STOPPED;
  spec.session = session;
  if (status.phase === Phase.RUNNING) status.phase = transitionExecution(status.phase, "cancel");
  status.session = session;
  return execution;
}

/** A cancelled execution once the last of its actions has let go. */
export function stoppedExecution(present: WorkflowExecution, now: number): WorkflowExecution {
  return moved(present, "stop", (execution) => finish(execution, now));
}

/** The execution with more warnings. */
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

/** Whether nothing of it happens any more. */
export function hasEnded(execution: WorkflowExecution): boolean {
  return isFinalExecution(phaseOfExecution(execution));
}

/** Whether it is, or was, cancelled. */
export function isCancelled({ spec }: WorkflowExecution): boolean {
  return spec?.desiredPhase === Phase.STOPPED;
}

/** How many actions it has, whatever became of them. */
export function actionCount({ status }: WorkflowExecution): number {
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

/** What `search` looks through: one folded line each for id and the workflow's name at the start. */
export function executionSearchText(id: string, workflowName: string): string {
  return fold([id, workflowName].join("\n"));
}

function moved(
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
