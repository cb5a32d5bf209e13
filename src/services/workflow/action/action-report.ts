import { durationMs } from "@bufbuild/protobuf/wkt";
import type {
  ReportProgressRequest_LogChunk as LogChunk,
  ReportProgressRequest_StepProgress as StepProgress,
} from "#gen/runner/v1/work_service_pb.js";
import {
  FinishWorkRequest_Outcome as Outcome,
  ReportProgressRequest_StepProgress_State as State,
} from "#gen/runner/v1/work_service_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import type { WorkflowStep } from "#gen/service/v1/workflow_pb.js";
import { reportedError } from "../../../domain/workflow/execution/reported-failure.ts";
import { phaseOf, stepsOf } from "../../../domain/workflow/execution/workflow-action.ts";
import type { StepTransition } from "../../../domain/workflow/execution/workflow-step.ts";
import {
  needAgents,
  requireNoGap,
  requireStepIndex,
  stepStateMissing,
} from "../../../domain/workflow/execution/workflow-step.ts";
import { isFinalAction } from "../../../domain/workflow/execution/workflow-transitions.ts";
import { findEnvironmentOfAction } from "../../../store/environment/environment-work.ts";
import type { StoredWork } from "../../../store/runner/work.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { appendLog } from "../../../store/workflow/step-log.ts";
import { type FoundAction, findAction } from "../../../store/workflow/workflow-action.ts";
import { findWholeExecution } from "../../../store/workflow/workflow-execution.ts";
import { applyEnvironmentReport } from "../../environment/environment-work.ts";
import type { WorkProgress } from "../../runner/work-handler.ts";
import { recordPullRequests } from "../pull-request/pull-request-record.ts";
import { advanceSteps } from "./action-progress.ts";
import { carryOutStepPushes } from "./step-push.ts";

/** An action and its environment after a report. */
export interface ReportedAction {
  readonly action: FoundAction;
  /** Undefined if the report did not need it. */
  readonly environment: Environment | undefined;
  /** False when no agent execution is in its environment or waits for it. */
  readonly environmentHasAgents: boolean;
  /** False when no agent executes a step of it. */
  readonly mayHaveAgentSteps: boolean;
}

/**
 * Applies a runner's report on an action. A report on an action that has ended is
 * ignored, and the runner is asked to stop.
 */
export async function reportAction(
  tx: WriteTransaction,
  scope: Scope,
  lease: StoredWork,
  req: WorkProgress,
): Promise<{ readonly stop: boolean; readonly reported?: ReportedAction }> {
  const { environment: progress } = req;
  const [before, stored, found] = await Promise.all([
    findAction(tx.db, scope, lease.subject_id),
    // Most reports are about output only. The work of an action is in the group of its execution.
    req.steps.length > 0 ? findWholeExecution(tx.db, scope, lease.group_id) : undefined,
    progress && findEnvironmentOfAction(tx.db, scope, lease.subject_id),
  ]);
  if (!before || isFinalAction(phaseOf(before))) return { stop: true };
  const isEnd = endsAttempt(req);
  const known = { isRemovedNext: isEnd, hasAgents: found?.hasAgents ?? true };
  const environment =
    found && progress && (await applyEnvironmentReport(tx, scope, found.environment, progress, known));
  const steps = stored ? stepsOf(stored.execution, before) : [];
  const mayHaveAgentSteps = !stored || needAgents(steps);
  const transitions = toTransitions(tx, steps, req);
  // When an agent's step ends, the action itself changes, via its row.
  const options = { isChangedNext: isEnd && !mayHaveAgentSteps };
  const { action, stop } = await advanceSteps(tx, scope, { before, steps }, transitions, options);
  if (stored) {
    await recordPullRequests(tx, scope, { action, execution: stored.execution }, steps, transitions);
    await carryOutStepPushes(tx, scope, action, req.steps);
  }
  await appendLogs(tx, lease, action, req.logs);
  return {
    stop,
    reported: {
      action,
      environment,
      environmentHasAgents: known.hasAgents || mayHaveAgentSteps,
      mayHaveAgentSteps,
    },
  };
}

/** Returns whether the same write ends the action and removes its environment. */
function endsAttempt({ endsAs }: WorkProgress): boolean {
  return endsAs === Outcome.DONE || endsAs === Outcome.FAILED || endsAs === Outcome.STOPPED;
}

function toTransitions(
  tx: WriteTransaction,
  steps: readonly WorkflowStep[],
  { steps: reported, since }: WorkProgress,
): StepTransition[] {
  return reported.map((each, index) => ({
    ...toTransition(each, steps[each.stepIndex], `steps[${index}]`),
    ...(each.ago && { at: Math.max(since, tx.now - durationMs(each.ago)) }),
  }));
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
