import { clone, create, equals } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Project, ProjectEnvironmentClassSchema, ProjectSchema } from "#gen/service/v1/project_pb.js";
import {
  type EnvironmentClass,
  EnvironmentClassSchema,
  RunnerKind,
  RunnerKindSchema,
} from "#gen/service/v1/runner_configuration_pb.js";
import type {
  CreateEnvironmentClassRequest,
  UpdateEnvironmentClassRequest,
} from "#gen/service/v1/runner_configuration_service_pb.js";
import type { Runner } from "#gen/service/v1/runner_pb.js";
import { phaseUnsuitable, valueUnusable } from "../error.ts";
import { setAnnotations } from "../identity/annotation/annotations.ts";
import type { Caller } from "../identity/caller.ts";
import { permissionOf } from "../identity/permissions.ts";
import type { Policies } from "../policy/policies.ts";
import { isLocalKind } from "./runner.ts";

const RUNNER_KINDS = RunnerKindSchema.values.map(({ number }): RunnerKind => number);

/**
 * Returns a new, enabled class of the runner.
 * @throws DomainError VALUE_UNUSABLE for the runner that represents local runners
 */
export function newEnvironmentClass(
  req: CreateEnvironmentClassRequest,
  runner: Runner,
  id: string,
): EnvironmentClass {
  if (runner.kind === RunnerKind.LOCAL_CONFIGURATION) {
    throw valueUnusable("runnerId", "the runner represents local runners, which have no classes to create");
  }
  const { displayName, description, configuration } = req;
  const { runnerId } = runner;
  const environmentClass = create(EnvironmentClassSchema, {
    id,
    displayName,
    description,
    configuration,
    runnerId,
    enabled: true,
  });
  setAnnotations(environmentClass, req);
  return environmentClass;
}

/** Returns the class after an update; undefined when nothing changes. Absent fields do not change. */
export function updatedEnvironmentClass(
  present: EnvironmentClass,
  req: UpdateEnvironmentClassRequest,
): EnvironmentClass | undefined {
  const { displayName, description, enabled } = req;
  const environmentClass = clone(EnvironmentClassSchema, present);
  if (displayName !== undefined) environmentClass.displayName = displayName;
  if (description !== undefined) environmentClass.description = description;
  if (enabled !== undefined) environmentClass.enabled = enabled;
  setAnnotations(environmentClass, req);
  return equals(EnvironmentClassSchema, present, environmentClass) ? undefined : environmentClass;
}

/**
 * Requires that a class accepts new environments.
 * @throws DomainError PHASE_UNSUITABLE
 */
export function requireClassEnabled({ enabled }: EnvironmentClass): void {
  if (enabled) return;
  throw phaseUnsuitable(
    "environment class",
    "disabled",
    "the environment class is disabled: enable it, or choose another",
  );
}

/** Returns the project without its entries for the given classes, which are about to be deleted. */
export function withoutClasses(present: Project, classIds: ReadonlySet<string>, now: number): Project {
  const project = clone(ProjectSchema, present);
  project.environmentClasses = project.environmentClasses.filter(
    ({ environmentClass: { case: kind, value } }) => kind !== "environmentClassId" || !classIds.has(value),
  );
  project.environmentClass = project.environmentClasses[0] ?? create(ProjectEnvironmentClassSchema);
  const prebuilds = project.prebuildConfiguration;
  if (prebuilds) {
    prebuilds.environmentClassIds = prebuilds.environmentClassIds.filter((id) => !classIds.has(id));
  }
  if (project.metadata) project.metadata.updatedAt = timestampFromMs(now);
  return project;
}

/** Returns the kinds of runners whose classes accept environments of a role; empty for a role that creates none. */
export function kindsAcceptingEnvironments(
  { effective }: Policies,
  role: Caller["role"],
): readonly RunnerKind[] {
  if (permissionOf("service.v1.EnvironmentService/CreateEnvironment")?.grants[role] === "none") return [];
  return RUNNER_KINDS.filter((kind) => effective.allowLocalRunners || !isLocalKind(kind));
}

/**
 * Requires that an environment class belongs to the requested runner.
 * @param runnerId empty for any runner
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireClassOfRunner(environmentClass: EnvironmentClass, runnerId: string): void {
  if (runnerId === "" || environmentClass.runnerId === runnerId) return;
  throw valueUnusable("runnerId", "the environment class is of another runner: name that one, or neither");
}
