import { WorkKind } from "#gen/runner/v1/work_pb.js";
import type { FinishWorkRequest_StepPush as StepPush } from "#gen/runner/v1/work_service_pb.js";
import { type Approval, ApprovalKind } from "#gen/service/v1/approval_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import type { WorkflowError } from "#gen/service/v1/workflow_error_pb.js";
import type { WorkflowExecution } from "#gen/service/v1/workflow_pb.js";
import {
  isPaused,
  pausedEnvironment,
  resumedEnvironment,
} from "../../../domain/environment/environment-phase.ts";
import { DomainError } from "../../../domain/error.ts";
import { requireExecutor } from "../../../domain/identity/executor.ts";
import {
  decidedPush,
  hasWorkspace,
  isAsking,
  nextStepOf,
  passedAction,
  pausedAction,
  rewoundAction,
} from "../../../domain/workflow/execution/approval-step.ts";
import { stepsOf } from "../../../domain/workflow/execution/workflow-action.ts";
import { mustStop } from "../../../domain/workflow/execution/workflow-action-transitions.ts";
import { isCancelled } from "../../../domain/workflow/execution/workflow-execution.ts";
import { findEnvironment } from "../../../store/environment/environment.ts";
import { insertWork, removeWork, type StoredWork } from "../../../store/runner/work.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { type FoundAction, updateAction } from "../../../store/workflow/workflow-action.ts";
import { setOutputs } from "../../../store/workflow/workflow-output.ts";
import { changeEnvironment } from "../../environment/environment-change.ts";
import { removeEnvironmentTokens } from "../../identity/environment-token.ts";
import { findAccountOfExecutor, getExecutorAsCaller } from "../../identity/executor.ts";
import { enterNextStep } from "../execution/approval-entry.ts";
import { advanceExecution } from "../execution/execution-advance.ts";
import { requestEnvironmentDeletion } from "../execution/kept-environment.ts";
import { resolveActionPlacement } from "./action-placement.ts";
import { findActionOfExecution, finishAction } from "./action-progress.ts";
import { askStepPush } from "./step-push.ts";

/**
 * Ends the lease of an action that has reached an approval step, or a pullRequest step whose push people must
 * approve. Its environment remains on its runner but is stopped: agents in it end, and nothing can act as it in the
 * meantime. An action that was asked to stop ends instead.
 *
 * @param push the push of a pullRequest step
 * @throws DomainError PHASE_UNSUITABLE when the next step is of another kind; VALUE_UNUSABLE for a push to another
 * repository
 */
export async function pauseAction(
  tx: WriteTransaction,
  scope: Scope,
  lease: StoredWork,
  warnings: readonly WorkflowError[],
  push?: StepPush,
): Promise<void> {
  const found = await findActionOfExecution(tx, scope, lease.subject_id, lease.group_id);
  const environmentId = found?.action.status?.environmentId ?? "";
  if (!found || mustStop(found.action) || lease.stop === 1) {
    await requestEnvironmentDeletion(tx, scope, environmentId);
    await finishAction(tx, scope, found?.action, { kind: "stopped" }, warnings);
    return removeWork(tx, lease.id);
  }
  const { action, execution } = found;
  const paused = pausedAction(action, stepsOf(execution, action), warnings, push !== undefined);
  await removeWork(tx, lease.id);
  await updateAction(tx, scope, action, paused);
  const environment = await findEnvironment(tx.db, scope, environmentId);
  if (push) await askStepPush(tx, scope, { execution, action, environment, push });
  if (environment) await changeEnvironment(tx, scope, environment, pausedEnvironment(environment));
  await removeEnvironmentTokens(tx, scope, environmentId);
  await continueAction(tx, scope, execution, Object.assign(paused, { id: action.id }));
}

/** Continues an action after people decided the step or push that it waits for, or the time expired. */
export async function applyStepApproval(
  tx: WriteTransaction,
  scope: Scope,
  approval: Approval,
): Promise<void> {
  const { asker } = approval;
  const { workflowActionId = "", workflowExecutionId = "", stepIndex } = asker ?? {};
  const found = await findActionOfExecution(tx, scope, workflowActionId, workflowExecutionId);
  if (!found || !isAsking(found.action) || nextStepOf(found.action) !== stepIndex) return;
  // In a cancelled execution, jobs/stops.ts may not have stopped this action yet.
  if (isCancelled(found.execution)) return;
  if (approval.kind !== ApprovalKind.PUSH) return continueAction(tx, scope, found.execution, found.action);
  const decided = Object.assign(decidedPush(found.action, approval, tx.now), { id: found.action.id });
  await updateAction(tx, scope, found.action, decided);
  await continueAction(tx, scope, found.execution, decided);
}

async function continueAction(
  tx: WriteTransaction,
  scope: Scope,
  execution: WorkflowExecution,
  before: FoundAction,
): Promise<void> {
  const { kind, action } = await enterNextStep(tx, scope, execution, before);
  if (kind === "waiting") return;
  if (kind === "ready") return queueAgain(tx, scope, execution, action);
  await endDecided(tx, scope, kind, action);
}

/** Ends an action whose last step was approved, or one of whose steps was denied. */
export async function endDecided(
  tx: WriteTransaction,
  scope: Scope,
  kind: "refused" | "done",
  action: FoundAction,
): Promise<void> {
  await requestEnvironmentDeletion(tx, scope, action.status?.environmentId ?? "");
  if (kind === "refused") {
    const [error] = (action.status?.stepStatuses ?? []).flatMap((step) => step.error ?? []);
    if (!error) throw new Error(`no step of the action ${action.id} has failed`);
    await finishAction(tx, scope, action, { kind: "failed", error }, []);
    return;
  }
  await updateAction(tx, scope, action, passedAction(action, tx.now));
  await advanceExecution(tx, scope, action.metadata?.workflowExecutionId ?? "");
}

/**
 * Queues the remaining steps of an action after an approval, for the runner that has its environment. If the
 * environment was removed in the meantime, any runner may start the action again.
 */
async function queueAgain(
  tx: WriteTransaction,
  scope: Scope,
  execution: WorkflowExecution,
  action: FoundAction,
): Promise<void> {
  const environment = await findKeptEnvironment(tx, scope, action);
  const attempt = Math.max(0, (action.status?.attempt ?? 0) - 1);
  if (environment && hasWorkspace(action, stepsOf(execution, action))) {
    const runnerId = environment.metadata?.runnerId || null;
    return queue(tx, scope, execution, action.id, { runnerId, environmentClassId: null, attempt });
  }
  await queueAnywhere(tx, scope, execution, action, attempt);
}

/**
 * Queues an action for any runner that can run it; if there can be none, the action fails.
 *
 * @param attempt number of earlier attempts
 */
export async function queueAnywhere(
  tx: WriteTransaction,
  scope: Scope,
  execution: WorkflowExecution,
  action: FoundAction,
  attempt: number,
): Promise<void> {
  const placement = await resolveActionPlacement(tx, scope, action);
  if (!("error" in placement)) return queue(tx, scope, execution, action.id, { ...placement, attempt });
  await finishAction(tx, scope, action, { kind: "failed", error: placement.error }, []);
}

/**
 * Queues an action again that only a removed runner could have continued, because it had the environment.
 *
 * @param work the work of the action, which is no longer in the queue
 * @returns false for an action that no environment bound to the runner
 */
export async function queueElsewhere(tx: WriteTransaction, scope: Scope, work: StoredWork): Promise<boolean> {
  const found = await findActionOfExecution(tx, scope, work.subject_id, work.group_id);
  if (!found || !hasWorkspace(found.action, stepsOf(found.execution, found.action))) return false;
  await queueAnywhere(tx, scope, found.execution, found.action, work.attempt);
  return true;
}

async function queue(
  tx: WriteTransaction,
  scope: Scope,
  { id: groupId, metadata }: WorkflowExecution,
  subjectId: string,
  where: {
    readonly runnerId: string | null;
    readonly environmentClassId: string | null;
    readonly attempt: number;
  },
): Promise<void> {
  const { executor } = metadata ?? {};
  const accountId = executor ? await findAccountOfExecutor(tx, scope, executor) : null;
  await insertWork(tx, scope, { kind: WorkKind.ACTION, subjectId, groupId, accountId, ...where });
}

/** Returns the environment that was kept while an action waited; undefined if it was removed or is being deleted. */
async function findKeptEnvironment(
  tx: WriteTransaction,
  scope: Scope,
  { id, status }: FoundAction,
): Promise<Environment | undefined> {
  const environment = await findEnvironment(tx.db, scope, status?.environmentId ?? "");
  if (environment?.spec?.workflowActionId !== id) return undefined;
  return isPaused(environment, tx.now) ? environment : undefined;
}

/** Resumes and returns the kept environment of an action that a runner continues; undefined if it is not on that runner. */
export async function resumeEnvironment(
  tx: WriteTransaction,
  scope: Scope,
  action: FoundAction,
  runnerId: string,
): Promise<Environment | undefined> {
  const before = await findKeptEnvironment(tx, scope, action);
  if (before?.metadata?.runnerId !== runnerId) return undefined;
  const after = resumedEnvironment(before);
  await changeEnvironment(tx, scope, before, after);
  return after;
}

/** Resets the steps of an action that cannot continue in its environment, so that they begin again. */
export async function rewindAction(
  tx: WriteTransaction,
  scope: Scope,
  before: FoundAction,
): Promise<FoundAction> {
  const after = Object.assign(rewoundAction(before), { id: before.id });
  await requestEnvironmentDeletion(tx, scope, before.status?.environmentId ?? "");
  await updateAction(tx, scope, before, after);
  await setOutputs(tx, scope, before.id, undefined);
  return after;
}

/** Returns why the executor may no longer act; undefined if it may. Much may have changed before people decided. */
export async function findExecutorProblem(
  tx: WriteTransaction,
  scope: Scope,
  execution: WorkflowExecution,
): Promise<DomainError | undefined> {
  try {
    await getExecutorAsCaller(tx, scope, requireExecutor(execution.metadata?.executor));
    return undefined;
  } catch (error) {
    if (error instanceof DomainError) return error;
    throw error;
  }
}
