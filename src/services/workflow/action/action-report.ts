import { durationMs } from "@bufbuild/protobuf/wkt";
import type {
  ReportProgressRequest_LogChunk as LogChunk,
  ReportProgressRequest_StepProgress as StepProgress,
} from "#gen/runner/v1/work_service_pb.js";
import { ReportProgressRequest_StepProgress_State as State } from "#gen/runner/v1/work_service_pb.js";
import type { WorkflowExecutionAction, WorkflowStep } from "#gen/service/v1/workflow_pb.js";
import { reportedError } from "../../../domain/workflow/execution/reported-failure.ts";
import { phaseOf, stepsOf } from "../../../domain/workflow/execution/workflow-action.ts";
import type { StepTransition } from "../../../domain/workflow/execution/workflow-step.ts";
import {
  requireNoGap,
  requireStepIndex,
  stepStateMissing,
} from "../../../domain/workflow/execution/workflow-step.ts";
import { isFinalAction } from "../../../domain/workflow/execution/workflow-transitions.ts";
import type { StoredWork } from "../../../store/runner/work.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { appendLog } from "../../../store/workflow/step-log.ts";
import { type FoundAction, findAction } from "../../../store/workflow/workflow-action.ts";
import { findWholeExecution } from "../../../store/workflow/workflow-execution.ts";
import { reportEnvironment } from "../../environment/environment-work.ts";
import type { WorkProgress } from "../../runner/work-handler.ts";
import { advanceSteps } from "./action-progress.ts";

/**
 * Applies a runner's report on an action. A report on an action that has ended is
 * ignored, and the runner is told to stop.
 */
export async function reportAction(
  tx: WriteTransaction,
  scope: Scope,
  lease: StoredWork,
  req: WorkProgress,
): Promise<{ readonly stop: boolean }> {
  const action = await findAction(tx.db, scope, lease.subject_id);
  if (!action || isFinalAction(phaseOf(action))) return { stop: true };
  await reportEnvironment(tx, scope, action.status?.environmentId ?? "", req.environment);
  const progress = await advanceSteps(tx, scope, action, await toTransitions(tx, scope, action, req));
  await appendLogs(tx, lease, action, req.logs);
  return progress;
}

async function toTransitions(
  tx: WriteTransaction,
  scope: Scope,
  action: WorkflowExecutionAction,
  { steps: reported, since }: WorkProgress,
): Promise<StepTransition[]> {
  const hasFailure = reported.some(({ state }) => state === State.FAILED);
  const steps = hasFailure ? await stepsOfAction(tx, scope, action) : [];
  return reported.map((each, index) => ({
    ...toTransition(each, steps[each.stepIndex], `steps[${index}]`),
    ...(each.ago && { at: Math.max(since, tx.now - durationMs(each.ago)) }),
  }));
}

async function stepsOfAction(
  tx: WriteTransaction,
  scope: Scope,
  action: WorkflowExecutionAction,
): Promise<WorkflowStep[]> {
  const stored = await findWholeExecution(tx.db, scope, action.metadata?.workflowExecutionId ?? "");
  return stored ? stepsOf(stored.execution, action) : [];
}

function toTransition(
  { stepIndex, state, failure, pullRequestUrl, outputs }: StepProgress,
  step: WorkflowStep | undefined,
  path: string,
): StepTransition {
  switch (state) {
    case State.RUNNING:
      return { stepIndex, state: "running" };
    case State.DONE:
      return { stepIndex, state: "done", pullRequestUrl, outputs };
    case State.FAILED:
      return { stepIndex, state: "failed", error: reportedError(failure, step) };
    default:
      throw stepStateMissing(path);
  }
}

async function appendLogs(
  tx: WriteTransaction,
  { attempt }: StoredWork,
  { id: actionId, status }: FoundAction,
  chunks: readonly LogChunk[],
): Promise<void> {
  const stepCount = status?.stepStatuses.length ?? 0;
  for (const [index, { stepIndex, offset, data }] of chunks.entries()) {
    requireStepIndex(stepIndex, stepCount, `logs[${index}]`);
    const log = { actionId, attempt, stepIndex };
    requireNoGap(await appendLog(tx, log, { offset: Number(offset), data }), `logs[${index}]`);
  }
}
