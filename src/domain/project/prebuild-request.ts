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
 * Returns the class and timeout of a prebuild that a caller asks for. The class must be in the project's
 * configuration; the default is the first one there.
 * @throws DomainError PENDING_DELETION for a project that is being deleted; VALUE_UNUSABLE for another class, for a
 * configuration without classes, and for a desired phase other than completed
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
 * Returns whether a prebuild still needs to be cancelled; false when it is or is about to be cancelled.
 * @throws DomainError PHASE_UNSUITABLE for one that has ended, is failing or is being deleted
 */
export function needsCancelling(prebuild: Prebuild): boolean {
  const { state } = prebuild;
  if (state === "cancelling" || state === "cancelled") return false;
  if (state === "waiting" || state === "running") return true;
  throw unsuitable(prebuild, "only a prebuild that waits or runs can be cancelled");
}

/**
 * Requires that the prebuilds that callers ask for may be stored: servers of the previous release would lose them.
 * @throws DomainError PHASE_UNSUITABLE
 */
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
