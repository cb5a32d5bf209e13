import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { PrebuildRemovalWorkSchema, PrebuildWorkSchema } from "#gen/runner/v1/work_pb.js";
import {
  FinishWorkRequest_Outcome as Outcome,
  type ReportProgressRequest,
} from "#gen/runner/v1/work_service_pb.js";
import { SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { type Project, ProjectPhase } from "#gen/service/v1/project_pb.js";
import {
  isEnding,
  isWanted,
  type Prebuild,
  prebuildTimeoutMs,
  requireNoEnvironment,
} from "../../domain/project/prebuild.ts";
import { requireNoSteps } from "../../domain/runner/lease.ts";
import { addressesOf } from "../../domain/source/initializer-address.ts";
import { findSourceSetters } from "../../store/identity/source-setter.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import { findPrebuild, updatePrebuild } from "../../store/project/prebuild.ts";
import { findProject } from "../../store/project/project.ts";
import { findEnvironmentClass } from "../../store/runner/environment-class.ts";
import type { StoredWork } from "../../store/runner/work.ts";
import { removeWork } from "../../store/runner/work.ts";
import { releaseWork } from "../../store/runner/work-lease.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { MAX_ATTEMPTS } from "../runner/held-lease.ts";
import type { LeaseEnd, WorkHandler } from "../runner/work-handler.ts";
import {
  endWithoutWorkspace,
  finishPrebuild,
  type PrebuildEnding,
  queueWorkspaceRemoval,
} from "./prebuild-end.ts";
import { findPrebuildFailure } from "./prebuild-plan.ts";

/** The delay before a runner that could not remove a workspace tries again. */
const RETRY_AFTER_MS = 10_000;

/** The handler of the work to prepare a workspace. */
export const prebuildWork: WorkHandler = {
  async begin(tx, scope, { work }) {
    const before = await findPrebuild(tx.db, scope, work.subject_id);
    const project = before && (await findProject(tx.db, scope, before.projectId));
    if (!before || !project || (await endIfForbidden(tx, scope, work, before, project))) return undefined;
    const stopsAtMs = before.stopsAtMs ?? tx.now + (before.timeoutMs ?? prebuildTimeoutMs(project));
    const { initializer } = project;
    const sourceSetBy = await findSourceSetters(tx.db, scope, "project", project);
    const after: Prebuild = { ...before, state: "running", stopsAtMs, initializer, sourceSetBy };
    await updatePrebuild(tx, scope, before, after);
    const content = create(PrebuildWorkSchema, {
      prebuildId: before.id,
      projectId: project.id,
      environmentClassId: before.environmentClassId,
      ...(initializer && { initializer }),
      devcontainerFilePath: project.devcontainerFilePath,
      automationsFilePath: project.automationsFilePath,
      timeout: durationFromMs(Math.max(0, stopsAtMs - tx.now)),
      enableIdeWarmup: project.prebuildConfiguration?.enableIdeWarmup ?? false,
    });
    const { securityPolicyId } = (await findPolicies(tx.db, scope)).effective;
    return { work: { case: "prebuild", value: content }, securityPolicyId };
  },

  report: requireNoProgress,

  async end(tx, scope, lease, end) {
    const prebuild = await findPrebuild(tx.db, scope, lease.subject_id);
    if (!prebuild) return removeWork(tx, lease.id);
    const isToStop = lease.stop === 1;
    const outcome = end.kind === "finished" ? end.outcome.outcome : Outcome.RELEASED;
    const isLost = outcome === Outcome.RELEASED;
    if (isLost && !isToStop && lease.attempt < MAX_ATTEMPTS) return releaseWork(tx, lease.id);
    await removeWork(tx, lease.id);
    if (outcome === Outcome.DONE && !isToStop) return finishPrebuild(tx, scope, prebuild);
    const ending = await endingOf(tx, scope, prebuild, failureIn(lease, end));
    // Also when the runner itself cleaned up: its report does not say so.
    await queueWorkspaceRemoval(tx, scope, prebuild, ending);
  },

  async credentialUse(tx, scope, lease) {
    const prebuild = await findPrebuild(tx.db, scope, lease.subject_id);
    const project = prebuild && (await findProject(tx.db, scope, prebuild.projectId));
    const creator = project?.metadata?.creator;
    return {
      subject: prebuild?.executor ?? create(SubjectSchema),
      addresses: addressesOf(prebuild?.initializer),
      // Prebuilds of an earlier release have no setters: the creator counts as the one who set the project's source.
      sourceSetBy: prebuild?.sourceSetBy ?? (creator ? [creator] : []),
      sourceKinds: ["project"],
      namedBy: creator,
    };
  },
};

/** The handler of the work to remove a workspace. */
export const prebuildRemovalWork: WorkHandler = {
  async begin(_tx, _scope, { work }) {
    const content = create(PrebuildRemovalWorkSchema, { prebuildId: work.subject_id });
    return { work: { case: "prebuildRemoval", value: content }, securityPolicyId: "" };
  },

  report: requireNoProgress,

  /**
   * Ends the lease. After the last attempt people must clean up: a project must not wait indefinitely for the
   * removal.
   */
  async end(tx, scope, lease, end) {
    const isDone = end.kind === "finished" && end.outcome.outcome === Outcome.DONE;
    if (!isDone && lease.attempt < MAX_ATTEMPTS) {
      return releaseWork(tx, lease.id, { notBefore: tx.now + RETRY_AFTER_MS });
    }
    const prebuild = await findPrebuild(tx.db, scope, lease.subject_id);
    if (!prebuild) return removeWork(tx, lease.id);
    await removeWork(tx, lease.id);
    const { state } = prebuild;
    const warning = isDone ? "" : `its workspace may still be at the runner: ${failureIn(lease, end)}`;
    await endWithoutWorkspace(tx, scope, prebuild, { state: isEnding(state) ? state : "removing" }, warning);
  },

  async credentialUse() {
    return { subject: create(SubjectSchema), addresses: [], sourceSetBy: [], sourceKinds: ["project"] };
  },
};

/** Ends a prebuild that must no longer be prepared. @returns whether it was ended */
async function endIfForbidden(
  tx: WriteTransaction,
  scope: Scope,
  work: StoredWork,
  prebuild: Prebuild,
  project: Project,
): Promise<boolean> {
  const environmentClass = await findEnvironmentClass(tx.db, scope, prebuild.environmentClassId);
  const { executor } = prebuild;
  const failure =
    !isWanted(prebuild, project) || !environmentClass
      ? "the project gets no prebuilds any more"
      : await findPrebuildFailure(tx, scope, { executor, environmentClass });
  if (failure === "") return false;
  await removeWork(tx, work.id);
  const ending = { state: "failing", failure } as const;
  if (prebuild.state === "waiting") await endWithoutWorkspace(tx, scope, prebuild, ending);
  else await queueWorkspaceRemoval(tx, scope, prebuild, ending);
  return true;
}

/** Returns the ending of a prebuild that its runner has ended: the requested one, or else a failure. */
async function endingOf(
  tx: WriteTransaction,
  scope: Scope,
  { projectId, state, failure: known }: Prebuild,
  reason: string,
): Promise<PrebuildEnding> {
  if (isEnding(state)) return { state, failure: state === "cancelling" ? "" : known };
  const failure = known || reason;
  // A project that is pending deletion waits until the rows of its prebuilds are removed.
  const project = await findProject(tx.db, scope, projectId);
  return { state: project?.desiredPhase === ProjectPhase.DELETED ? "removing" : "failing", failure };
}

function failureIn({ attempt }: StoredWork, end: LeaseEnd): string {
  const outcome = end.kind === "finished" ? end.outcome : undefined;
  if (outcome?.outcome === Outcome.FAILED) return outcome.failure?.message || "the runner said no more";
  if (outcome?.outcome === Outcome.STOPPED) return "the runner stopped without being asked to";
  return `the runner was lost, or gave the work back, in each of ${attempt} attempts`;
}

async function requireNoProgress(
  _tx: WriteTransaction,
  _scope: Scope,
  _lease: unknown,
  report: ReportProgressRequest,
) {
  requireNoEnvironment(report);
  requireNoSteps(report);
  return { stop: false };
}
