import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { ActionWorkSchema } from "#gen/runner/v1/work_pb.js";
import { FinishWorkRequest_Outcome as Outcome } from "#gen/runner/v1/work_service_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { SubjectSchema } from "#gen/service/v1/identity_pb.js";
import type { WorkflowExecution } from "#gen/service/v1/workflow_pb.js";
import type { ListWorkflowExecutionOutputsResponse_ActionOutput as ActionOutput } from "#gen/service/v1/workflow_service_pb.js";
import { DomainError, leaseLost } from "../../../domain/error.ts";
import { PolicyDenied } from "../../../domain/policy/policy-decision.ts";
import { addressesOf } from "../../../domain/source/initializer-address.ts";
import { sourceKindsOf } from "../../../domain/source/source-trust.ts";
import { traceparentOf } from "../../../domain/trace/trace-context.ts";
import { pullRequestOfAction } from "../../../domain/workflow/execution/action-environment.ts";
import {
  hasWorkspace,
  nextStepOf,
  stepsToHandOut,
} from "../../../domain/workflow/execution/approval-step.ts";
import { reportedError } from "../../../domain/workflow/execution/reported-failure.ts";
import { deadlineOf, phaseOf, stepsOf } from "../../../domain/workflow/execution/workflow-action.ts";
import { workflowError } from "../../../domain/workflow/execution/workflow-error.ts";
import { isCancelled } from "../../../domain/workflow/execution/workflow-execution.ts";
import { isFinalAction } from "../../../domain/workflow/execution/workflow-transitions.ts";
import { findEnvironment } from "../../../store/environment/environment.ts";
import { findSourceSetters } from "../../../store/identity/source-setter.ts";
import type { StoredWork } from "../../../store/runner/work.ts";
import { removeWork } from "../../../store/runner/work.ts";
import { postponeWork, releaseWork } from "../../../store/runner/work-lease.ts";
import type { Reader, Scope, WriteTransaction } from "../../../store/store.ts";
import { findAction } from "../../../store/workflow/workflow-action.ts";
import { findExecution, findWholeExecution } from "../../../store/workflow/workflow-execution.ts";
import { findOutputsOfActions } from "../../../store/workflow/workflow-output.ts";
import { findUsablePrebuildId } from "../../project/prebuild-selection.ts";
import { MAX_ATTEMPTS } from "../../runner/held-lease.ts";
import type { LeaseEnd, WorkHandler, WorkToLease } from "../../runner/work-handler.ts";
import { enterNextStep } from "../execution/approval-entry.ts";
import { findExecutorAssigner } from "../execution/executor-assigner.ts";
import { requestEnvironmentDeletion } from "../execution/kept-environment.ts";
import { type ActionAhead, findPeople, readActionsAhead } from "./action-ahead.ts";
import {
  endDecided,
  findExecutorProblem,
  pauseAction,
  queueAnywhere,
  resumeEnvironment,
  rewindAction,
} from "./action-approval.ts";
import {
  type ActionEnvironment,
  findActionEnvironmentRemoval,
  insertActionEnvironment,
  newActionEnvironment,
  releaseActionEnvironment,
} from "./action-environment.ts";
import {
  type ActionEnd,
  type ActionOfExecution,
  beginAction,
  findActionOfExecution,
  finishAction,
  warnAction,
  warnOfRunnerWait,
} from "./action-progress.ts";
import { type ReportedAction, reportAction } from "./action-report.ts";
import { findApprovedPushDigest } from "./step-push.ts";

/** The delay before an action whose executor has reached an environment quota is offered again. */
const QUOTA_RETRY_MS = 5_000;

/** The policies with quotas of environments, which may free up without a change by a person. */
const QUOTA_POLICIES: readonly string[] = ["maximumEnvironmentsPerUser", "maximumRunningEnvironmentsPerUser"];

/** The handler of the work to run an action of a workflow execution. Each attempt gets a new environment. */
export const actionWork: WorkHandler<ReportedAction, ActionAhead> = {
  readAhead: readActionsAhead,

  async begin(tx, scope, offered) {
    const found = await findActionToBegin(tx, scope, offered);
    if (!found) return undefined;
    const { attempt } = offered;
    const kept = found.kept;
    const made = kept ? undefined : await createEnvironmentForAttempt(tx, scope, offered, found);
    if (made) await insertActionEnvironment(tx, scope, made);
    const environment = kept ?? made?.environment;
    if (!environment) return undefined;
    const begun = await beginAction(tx, scope, found, { environmentId: environment.id, attempt });
    offered.ahead?.begin(begun.execution);
    return {
      work: { case: "action", value: await toActionWork(tx, scope, begun, environment, kept !== undefined) },
      environment,
      isNewEnvironment: made !== undefined,
      securityPolicyId: environment.spec?.securityPolicyId ?? "",
    };
  },

  report: reportAction,

  async end(tx, scope, lease, end, reported) {
    const warnings =
      end.kind === "finished" ? end.outcome.warnings.map((warning) => reportedError(warning)) : [];
    if (end.kind === "finished" && end.outcome.outcome === Outcome.WAITING)
      return pauseAction(tx, scope, lease, warnings, end.outcome.push);
    const action = reported?.action ?? (await findAction(tx.db, scope, lease.subject_id));
    const environmentId = action?.status?.environmentId ?? "";
    const how = toActionEnd(lease, end);
    // An action that no runner holds has waited for people, and may have a stopped environment.
    const isReleased = how.kind === "lost" || !lease.leased_by;
    const findRemoval = () =>
      isReleased ? undefined : findActionEnvironmentRemoval(tx, scope, environmentId, reported);
    // Runs concurrently, unless the end of the action may change agents in its environment.
    const removal = reported?.mayHaveAgentSteps === false ? findRemoval() : undefined;
    // An error of the removal matters only if the action has ended; it is awaited below.
    removal?.catch(() => {});
    const next = await finishAction(tx, scope, action, how, warnings, reported?.mayHaveAgentSteps);
    if (isReleased) await releaseActionEnvironment(tx, scope, environmentId);
    else await (await (removal ?? findRemoval()))?.();
    if (next === "ended") return removeWork(tx, lease.id);
    if (lease.runner_id === null) return releaseWork(tx, lease.id);
    // After an approval only the runner with the environment could take it, and that environment is now lost.
    await removeWork(tx, lease.id);
    const found = await findActionOfExecution(tx, scope, lease.subject_id, lease.group_id);
    if (found) await queueAnywhere(tx, scope, found.execution, found.action, lease.attempt);
  },

  warn: warnOfRunnerWait,

  async credentialUse(tx, scope, lease) {
    const action = await findAction(tx.db, scope, lease.subject_id);
    const stored = await findWholeExecution(tx.db, scope, action?.metadata?.workflowExecutionId ?? "");
    // A stopped action no longer needs a credential, even if its executor has been unblocked since.
    if (!action || !stored || isFinalAction(phaseOf(action))) throw leaseLost();
    const environment = await findEnvironment(tx.db, scope, action.status?.environmentId ?? "");
    const cloneUrl = pullRequestOfAction(stored.execution)?.repository?.cloneUrl;
    return {
      subject: stored.execution.metadata?.executor ?? create(SubjectSchema),
      addresses: [...addressesOf(environment?.spec?.content?.initializer), ...(cloneUrl ? [cloneUrl] : [])],
      sourceSetBy: environment ? await findSourceSetters(tx.db, scope, "environment", environment) : [],
      sourceKinds: sourceKindsOf(stored.execution, environment?.metadata?.projectId !== ""),
      namedBy: await findExecutorAssigner(tx, scope, stored.execution),
    };
  },
};

/** An action that a runner may begin. */
interface ActionToBegin extends ActionOfExecution {
  /** The environment of the steps before an approval, if this runner kept it. */
  readonly kept: Environment | undefined;
}

/** Returns the action of a piece of work. If it has ended or waits for people, removes the work and returns undefined. */
async function findActionToBegin(
  tx: WriteTransaction,
  scope: Scope,
  { work, runnerId, ahead }: WorkToLease<ActionAhead>,
): Promise<ActionToBegin | undefined> {
  // The work of an action is in the group of its execution.
  const found = await (ahead?.found() ?? findActionOfExecution(tx, scope, work.subject_id, work.group_id));
  // In a cancelled execution, jobs/stops.ts may not have stopped this action yet.
  if (!found || isFinalAction(phaseOf(found.action)) || isCancelled(found.execution)) {
    await removeWork(tx, work.id);
    return undefined;
  }
  const { execution } = found;
  const steps = stepsOf(execution, found.action);
  let [before, kept] = [found.action, undefined as Environment | undefined];
  if (hasWorkspace(before, steps)) {
    const refusal = await findExecutorProblem(tx, scope, execution);
    if (refusal) {
      await requestEnvironmentDeletion(tx, scope, before.status?.environmentId ?? "");
      await postponeOrFail(tx, scope, work, refusal);
      return undefined;
    }
    kept = await resumeEnvironment(tx, scope, before, runnerId);
    if (!kept) before = await rewindAction(tx, scope, before);
  }
  // A new attempt passes the approval steps that were approved in an earlier one.
  const { kind, action } = await enterNextStep(tx, scope, execution, before);
  if (kind === "ready") return { ...found, action, kept };
  await removeWork(tx, work.id);
  if (kind !== "waiting") await endDecided(tx, scope, kind, action);
  return undefined;
}

/** Returns a new environment for the attempt; undefined when the action is postponed or has failed. */
async function createEnvironmentForAttempt(
  tx: WriteTransaction,
  scope: Scope,
  { work, runnerId, policies, ahead }: WorkToLease<ActionAhead>,
  { action, execution }: ActionOfExecution,
): Promise<ActionEnvironment | undefined> {
  const environmentClassId = work.environment_class_id;
  const wanted = { action, execution, runnerId, environmentClassId, policies };
  try {
    const people = (await ahead?.people()) ?? (await findPeople(tx, scope, execution));
    return await newActionEnvironment(tx, scope, wanted, people);
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    await postponeOrFail(tx, scope, work, error);
    return undefined;
  }
}

async function postponeOrFail(
  tx: WriteTransaction,
  scope: Scope,
  work: StoredWork,
  error: DomainError,
): Promise<void> {
  const { message, metadata } = error;
  if (error instanceof PolicyDenied && QUOTA_POLICIES.includes(error.decision.fieldPath)) {
    await warnAction(
      tx,
      scope,
      work.subject_id,
      workflowError("waiting_for_environment_limit", `the action waits: ${message}`, metadata),
    );
    return postponeWork(tx, work.id, tx.now + QUOTA_RETRY_MS);
  }
  const reason = error.reason === ErrorReason.EXECUTOR_UNFIT ? "executor_unfit" : "environment_refused";
  const failure = workflowError(reason, message, metadata);
  await removeWork(tx, work.id);
  const action = await findAction(tx.db, scope, work.subject_id);
  await finishAction(tx, scope, action, { kind: "failed", error: failure }, []);
}

async function toActionWork(
  tx: WriteTransaction,
  scope: Scope,
  { action, execution, variables }: ActionOfExecution,
  environment: Environment,
  isKept: boolean,
) {
  const [firstStep, report] = [nextStepOf(action), action.metadata?.report ?? false];
  const deadline = deadlineOf(action);
  const pullRequest = pullRequestOfAction(execution);
  const { trace } = execution.metadata ?? {};
  return create(ActionWorkSchema, {
    actionId: action.id,
    workflowExecutionId: execution.id,
    workflowId: execution.metadata?.workflowId ?? "",
    environment,
    ...traceparentOf(trace, action.id),
    steps: stepsToHandOut(stepsOf(execution, action), firstStep),
    firstStep,
    hasWorkspace: isKept,
    ...(isKept && { approvedPushDigest: await findApprovedPushDigest(tx, scope, action) }),
    variables: { ...variables },
    ...(deadline !== undefined && { maxTime: durationFromMs(Math.max(0, deadline - tx.now)) }),
    report,
    prebuildId: await findUsablePrebuildId(tx.db, scope, environment),
    outputs: report ? await findReportInput(tx.db, scope, execution) : [],
    ...(pullRequest && { pullRequest }),
  });
}

/** Returns the end of the action for the end of its lease. A released lease counts as lost. */
function toActionEnd({ leased_by, attempt }: StoredWork, end: LeaseEnd): ActionEnd {
  const outcome = end.kind === "finished" ? end.outcome.outcome : Outcome.RELEASED;
  switch (outcome) {
    case Outcome.DONE:
      return { kind: "done" };
    case Outcome.FAILED:
      return {
        kind: "failed",
        error: reportedError(end.kind === "finished" ? end.outcome.failure : undefined),
      };
    case Outcome.STOPPED:
      return { kind: "stopped" };
    default:
      return { kind: "lost", runnerId: leased_by ?? "", attempt, exhausted: attempt >= MAX_ATTEMPTS };
  }
}

/**
 * Returns the input of an execution's report action: the outputs of its other actions and, for a retry, of the
 * actions that succeeded in the earlier executions.
 */
async function findReportInput(
  db: Reader,
  scope: Scope,
  execution: WorkflowExecution,
): Promise<ActionOutput[]> {
  const outputs = await findOutputsOfActions(db, scope, execution.id, { withFailed: true });
  let retriedId = execution.metadata?.retriedExecutionId ?? "";
  while (retriedId !== "") {
    const retried = await findExecution(db, scope, retriedId);
    outputs.unshift(...(await findOutputsOfActions(db, scope, retriedId, { withFailed: false })));
    retriedId = retried?.execution.metadata?.retriedExecutionId ?? "";
  }
  return outputs;
}
