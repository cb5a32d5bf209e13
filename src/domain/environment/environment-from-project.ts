import { clone, create } from "@bufbuild/protobuf";
import {
  type EnvironmentSpec,
  EnvironmentSpec_AutomationsFileSchema,
  EnvironmentSpec_ContentSchema,
  EnvironmentSpec_DevContainerSchema,
  EnvironmentSpec_MachineSchema,
  EnvironmentSpecSchema,
} from "#gen/service/v1/environment_pb.js";
import type { Project } from "#gen/service/v1/project_pb.js";
import { requireProjectNotPendingDeletion } from "../project/project.ts";

/**
 * Returns the spec of an environment of the project: the project's initializer, first class and
 * file paths, each unless `asked` has its own.
 * @throws DomainError PENDING_DELETION for a project that is marked for removal
 */
export function specFromProject(project: Project, requested: EnvironmentSpec | undefined): EnvironmentSpec {
  requireProjectNotPendingDeletion(project);
  const spec = requested ? clone(EnvironmentSpecSchema, requested) : create(EnvironmentSpecSchema);
  if (project.initializer) {
    spec.content ??= create(EnvironmentSpec_ContentSchema);
    spec.content.initializer ??= project.initializer;
  }
  const [first] = project.environmentClasses;
  if (first?.environmentClass.case === "environmentClassId") {
    spec.machine ??= create(EnvironmentSpec_MachineSchema);
    spec.machine.class ||= first.environmentClass.value;
  }
  if (project.devcontainerFilePath) {
    spec.devcontainer ??= create(EnvironmentSpec_DevContainerSchema);
    spec.devcontainer.devcontainerFilePath ||= project.devcontainerFilePath;
  }
  if (project.automationsFilePath) {
    spec.automationsFile ??= create(EnvironmentSpec_AutomationsFileSchema);
    spec.automationsFile.automationsFilePath ||= project.automationsFilePath;
  }
  return spec;
}

/**
 * Returns whether the environment goes to its creator's local runner: the project lists it first,
 * and no class is named.
 */
export function startsLocally(project: Project, spec: EnvironmentSpec): boolean {
  return project.environmentClasses[0]?.environmentClass.case === "localRunner" && !spec.machine?.class;
}
