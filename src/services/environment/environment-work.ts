import { create } from "@bufbuild/protobuf";
import { EnvironmentWorkSchema } from "#gen/runner/v1/work_pb.js";
import type { ReportProgressRequest_EnvironmentProgress } from "#gen/runner/v1/work_service_pb.js";
import { FinishWorkRequest_Outcome as Outcome } from "#gen/runner/v1/work_service_pb.js";
import { type Environment, EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { SubjectSchema } from "#gen/service/v1/identity_pb.js";
import {
  assignedEnvironment,
  completedEnvironment,
  failedEnvironment,
  needsWork,
  reportedEnvironment,
  waitingEnvironment,
} from "../../domain/environment/environment-phase.ts";
import { requireNoSteps } from "../../domain/runner/lease.ts";
import { addressesOf } from "../../domain/source/initializer-address.ts";
import { type EnvironmentUpdateOptions, findEnvironment } from "../../store/environment/environment.ts";
import { queueEnvironmentWork } from "../../store/environment/environment-work.ts";
import { findSourceSetters } from "../../store/identity/source-setter.ts";
import type { StoredWork } from "../../store/runner/work.ts";
import { removeWork } from "../../store/runner/work.ts";
import { releaseWork } from "../../store/runner/work-lease.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { findUsablePrebuildId } from "../project/prebuild-selection.ts";
import { MAX_ATTEMPTS } from "../runner/held-lease.ts";
import type { LeaseEnd, WorkHandler } from "../runner/work-handler.ts";
import { changeEnvironment, deleteEnvironmentRow, type KnownDependents } from "./environment-change.ts";

/** The delay before a runner that could not stop or clean up an environment tries again. */
const RETRY_AFTER_MS = 10_000;

/** The handler of the work to bring an environment to its desired phase. */
export const environmentWork: WorkHandler = {
  async begin(tx, scope, { work, runnerId }) {
    const before = await findEnvironment(tx.db, scope, work.subject_id);
    if (!before || !needsWork(before)) {
      await removeWork(tx, work.id);
      return undefined;
    }
    const environment = assignedEnvironment(before, runnerId);
    await changeEnvironment(tx, scope, before, environment);
    const isNew = environment.status?.phase === EnvironmentPhase.CREATING;
    const prebuildId = isNew ? await findUsablePrebuildId(tx.db, scope, environment) : "";
    return {
      work: { case: "environment", value: create(EnvironmentWorkSchema, { environment, prebuildId }) },
      environment,
      securityPolicyId: environment.spec?.securityPolicyId ?? "",
      // Bound to the runner, since the environment is on its machine.
      leasedAs: { ...work, runner_id: runnerId },
    };
  },

  async report(tx, scope, lease, req) {
    requireNoSteps(req);
    await reportEnvironment(tx, scope, lease.subject_id, req.environment);
    return { stop: false };
  },

  async end(tx, scope, lease, end) {
    const environment = await findEnvironment(tx.db, scope, lease.subject_id);
    if (!environment) return removeWork(tx, lease.id);
    if (lease.stop === 1) await endSuperseded(tx, scope, lease, environment, failureIn(end));
    else if (end.kind === "finished" && end.outcome.outcome === Outcome.DONE) {
      await endSucceeded(tx, scope, lease, environment);
    } else await endFailed(tx, scope, lease, environment, end);
  },

  async warn(tx, scope, { subject_id }, { message }) {
    const before = await findEnvironment(tx.db, scope, subject_id);
    const after = before && waitingEnvironment(before, message);
    if (after) await changeEnvironment(tx, scope, before, after);
  },

  async credentialUse(tx, scope, lease) {
    const environment = await findEnvironment(tx.db, scope, lease.subject_id);
    const isWantedRunning = environment?.spec?.desiredPhase === EnvironmentPhase.RUNNING;
    const setters = isWantedRunning ? await findSourceSetters(tx.db, scope, "environment", environment) : [];
    return {
      subject: environment?.metadata?.creator ?? create(SubjectSchema),
      // Stopping or removing an environment needs no host credential.
      addresses: isWantedRunning ? addressesOf(environment.spec?.content?.initializer) : [],
      sourceSetBy: setters,
      sourceKinds: ["environment"],
    };
  },
};

/**
 * Applies a runner's report on the phase of an environment.
 *
 * @returns the environment after it; undefined when nothing changed
 */
export async function reportEnvironment(
  tx: WriteTransaction,
  scope: Scope,
  environmentId: string,
  progress: ReportProgressRequest_EnvironmentProgress | undefined,
): Promise<Environment | undefined> {
  const before = progress && (await findEnvironment(tx.db, scope, environmentId));
  return before && applyEnvironmentReport(tx, scope, before, progress);
}

/** Like {@link reportEnvironment}, for an environment that was read in this transaction. */
export async function applyEnvironmentReport(
  tx: WriteTransaction,
  scope: Scope,
  before: Environment,
  progress: ReportProgressRequest_EnvironmentProgress,
  options?: EnvironmentUpdateOptions & KnownDependents,
): Promise<Environment | undefined> {
  const after = reportedEnvironment(before, progress);
  if (after) await changeEnvironment(tx, scope, before, after, options);
  return after;
}

/** Ends a lease whose environment got another desired phase in the meantime, and queues the work for that phase. */
async function endSuperseded(
  tx: WriteTransaction,
  scope: Scope,
  lease: StoredWork,
  before: Environment,
  failureMessage: string,
): Promise<void> {
  await removeWork(tx, lease.id);
  const phase = EnvironmentPhase.UNSPECIFIED;
  const after = reportedEnvironment(before, { phase, failureMessage });
  if (after) await changeEnvironment(tx, scope, before, after);
  await queueEnvironmentWork(tx, scope, after ?? before);
}

async function endSucceeded(
  tx: WriteTransaction,
  scope: Scope,
  lease: StoredWork,
  before: Environment,
): Promise<void> {
  if (before.spec?.desiredPhase === EnvironmentPhase.DELETED) return deleteEnvironmentRow(tx, scope, before);
  await removeWork(tx, lease.id);
  const after = completedEnvironment(before);
  if (after !== before) await changeEnvironment(tx, scope, before, after);
}

/**
 * Ends a lease whose work failed or was lost. An environment that failed to start is stopped. One that failed to stop
 * or be cleaned up keeps its phase, since it may still exist: the runner retries, and after the last attempt people
 * must act.
 */
async function endFailed(
  tx: WriteTransaction,
  scope: Scope,
  lease: StoredWork,
  before: Environment,
  end: LeaseEnd,
): Promise<void> {
  const isExhausted = lease.attempt >= MAX_ATTEMPTS;
  const isFailure = end.kind === "finished" && end.outcome.outcome === Outcome.FAILED;
  if (!isFailure && !isExhausted) return releaseWork(tx, lease.id);
  const failureMessage = environmentFailureIn(lease, end);
  if (before.spec?.desiredPhase === EnvironmentPhase.RUNNING) {
    await removeWork(tx, lease.id);
    return changeEnvironment(tx, scope, before, failedEnvironment(before, failureMessage));
  }
  const after = reportedEnvironment(before, { phase: EnvironmentPhase.UNSPECIFIED, failureMessage });
  if (after) await changeEnvironment(tx, scope, before, after);
  if (isExhausted) await removeWork(tx, lease.id);
  else await releaseWork(tx, lease.id, { notBefore: tx.now + RETRY_AFTER_MS });
}

/** Returns why the last attempt at an environment failed, as a message for people. */
export function environmentFailureIn({ attempt }: Pick<StoredWork, "attempt">, end: LeaseEnd): string {
  return failureIn(end) || `the runner was lost, or gave the work back, in each of ${attempt} attempts`;
}

function failureIn(end: LeaseEnd): string {
  if (end.kind !== "finished" || end.outcome.outcome !== Outcome.FAILED) return "";
  return end.outcome.failure?.message || "the runner could not bring the environment to its phase";
}
