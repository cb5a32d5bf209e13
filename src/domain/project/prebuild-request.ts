import { durationMs } from "@bufbuild/protobuf/wkt";
import { PrebuildPhase as Phase, type PrebuildSpec } from "#gen/service/v1/prebuild_pb.js";
import { type Project, ProjectPhase } from "#gen/service/v1/project_pb.js";
import { pendingDeletion, phaseUnsuitable, valueUnusable } from "../error.ts";
import { type Prebuild, prebuildTimeoutMs } from "./prebuild.ts";
import { phaseOf } from "./prebuild-message.ts";

/** The part of a request for a prebuild that its caller chooses. */
interface PrebuildRequest {
  readonly environmentClassId?: string | undefined;
  readonly spec?: PrebuildSpec | undefined;
}

/**
 * Returns the class and the time of a prebuild that a caller asks for: a class of the project's configuration, the
 * first of them unless another is named.
 * @throws DomainError PENDING_DELETION for a project that is going; VALUE_UNUSABLE for another class, where the
 * configuration has none, and for another phase than the completed one
 */
export function plannedPrebuild(
  project: Project,
  { environmentClassId, spec }: PrebuildRequest,
): { readonly environmentClassId: string; readonly timeoutMs: number } {
  if (project.desiredPhase === ProjectPhase.DELETED) throw pendingDeletion("project");
  const desiredPhase = spec?.desiredPhase ?? Phase.UNSPECIFIED;
  if (desiredPhase !== Phase.UNSPECIFIED && desiredPhase !== Phase.COMPLETED) {
    throw valueUnusable("spec.desiredPhase", "a prebuild begins as one that is to be completed");
  }
  const classIds = project.prebuildConfiguration?.environmentClassIds ?? [];
  const classId = environmentClassId ?? classIds[0];
  if (classId === undefined || !classIds.includes(classId)) {
    throw valueUnusable(
      "environmentClassId",
      classId === undefined
        ? "the project gets no prebuilds: its prebuild configuration names no environment class"
        : "prebuilds are made for the environment classes of the project's prebuild configuration alone",
    );
  }
  return {
    environmentClassId: classId,
    timeoutMs: spec?.timeout ? durationMs(spec.timeout) : prebuildTimeoutMs(project),
  };
}

/**
 * Requires that no prebuild of a project and a class waits or runs.
 * @throws DomainError PHASE_UNSUITABLE
 */
export function requireNoneUnfinished(prebuilds: readonly Prebuild[]): void {
  const unfinished = prebuilds.find(({ state }) => state === "waiting" || state === "running");
  if (!unfinished) return;
  throw unsuitable(
    unfinished,
    `the prebuild ${unfinished.id} of the project and class has not ended: wait for it, or cancel it`,
  );
}

/**
 * Returns whether a prebuild is still to be cancelled; false for one that is, or is about to be.
 * @throws DomainError PHASE_UNSUITABLE for one that has ended, fails or is being deleted
 */
export function needsCancelling(prebuild: Prebuild): boolean {
  const { state } = prebuild;
  if (state === "cancelling" || state === "cancelled") return false;
  if (state === "waiting" || state === "running") return true;
  throw unsuitable(prebuild, "only a prebuild that waits or runs can be cancelled");
}

/** Requires that what callers ask for may be stored: servers of the release before lose it. @throws DomainError PHASE_UNSUITABLE */
export function requirePrebuildsKnown(isKnown: boolean): void {
  if (isKnown) return;
  throw phaseUnsuitable(
    "installation",
    "UPGRADING",
    "prebuilds can be made, cancelled and deleted once every server runs this release",
  );
}

function unsuitable({ state }: Prebuild, message: string) {
  return phaseUnsuitable("prebuild", Phase[phaseOf(state)], message);
}
