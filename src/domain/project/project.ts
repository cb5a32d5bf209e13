import { clone, create, equals } from "@bufbuild/protobuf";
import { DurationSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type {
  Environment,
  EnvironmentInitializer,
  EnvironmentInitializer_Spec,
} from "#gen/service/v1/environment_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import {
  type Project,
  type ProjectEnvironmentClass,
  ProjectEnvironmentClassSchema,
  ProjectPhase,
  type ProjectPrebuildConfiguration,
  ProjectPrebuildConfigurationSchema,
  ProjectSchema,
} from "#gen/service/v1/project_pb.js";
import type { CreateProjectRequest, UpdateProjectRequest } from "#gen/service/v1/project_service_pb.js";
import { initializerMissing, pendingDeletion, valueUnusable } from "../error.ts";
import { requireNotWithheld } from "../policy/work-secrets.ts";
import { sourceOfPage } from "../source/context-url.ts";
import { remoteForms, repositoryName } from "../source/remote.ts";
import { fold } from "../text/fold.ts";

/** Maximum length of a project name in characters (contract, ProjectMetadata.name). */
const NAME_MAX_CHARACTERS = 80;

/** Prebuild timeout when the request names none (contract, ProjectPrebuildConfiguration). */
const PREBUILD_TIMEOUT_DEFAULT_SECONDS = 3600n;

/** Values of a new project that the request does not contain. */
export interface CreationContext {
  readonly id: string;
  readonly organizationId: string;
  readonly creator: Subject;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
}

/** The fields of a create request that single, batch and template creation share. */
export type ProjectTemplate = Pick<CreateProjectRequest, "initializer"> &
  Partial<
    Pick<
      CreateProjectRequest,
      | "name"
      | "devcontainerFilePath"
      | "automationsFilePath"
      | "technicalDescription"
      | "prebuildConfiguration"
      | "annotations"
    >
  > & { readonly environmentClasses?: ProjectEnvironmentClass[] };

/**
 * Returns a new, active project.
 * @throws DomainError VALUE_UNUSABLE when the request has no name and the initializer implies none
 */
export function newProject(template: ProjectTemplate, origin: CreationContext): Project {
  const createdAt = timestampFromMs(origin.now);
  const project = create(ProjectSchema, {
    id: origin.id,
    metadata: {
      organizationId: origin.organizationId,
      name: template.name ?? nameFromInitializer(template.initializer),
      creator: origin.creator,
      createdAt,
      updatedAt: createdAt,
      annotations: template.annotations ?? {},
    },
    usedBy: {},
    devcontainerFilePath: template.devcontainerFilePath ?? "",
    automationsFilePath: template.automationsFilePath ?? "",
    technicalDescription: template.technicalDescription ?? "",
    desiredPhase: ProjectPhase.ACTIVE,
  });
  if (template.initializer) project.initializer = template.initializer;
  if (template.prebuildConfiguration) {
    project.prebuildConfiguration = completePrebuilds(template.prebuildConfiguration, origin.creator);
  }
  setEnvironmentClasses(project, template.environmentClasses ?? []);
  return project;
}

/**
 * Returns the template of a project whose environments would be created like this one.
 * @param isLocal true for an environment on a member's own machine, whose classes a project cannot name
 * @throws DomainError INITIALIZER_MISSING when the environment has no initializer; SECRETS_WITHHELD when it began
 * from a pull request of a fork, since environments of the project would get secrets
 */
export function templateFromEnvironment(environment: Environment, isLocal = false): ProjectTemplate {
  requireNotWithheld(environment);
  const spec = environment.spec;
  const initializer = spec?.content?.initializer;
  if (!initializer || initializer.specs.length === 0) throw initializerMissing();
  const classId = spec.machine?.class ?? "";
  return {
    initializer,
    devcontainerFilePath: spec.devcontainer?.devcontainerFilePath ?? "",
    automationsFilePath: spec.automationsFile?.automationsFilePath ?? "",
    environmentClasses: isLocal
      ? [classEntry({ case: "localRunner", value: true })]
      : classId
        ? [classEntry({ case: "environmentClassId", value: classId })]
        : [],
  };
}

function classEntry(environmentClass: ProjectEnvironmentClass["environmentClass"]): ProjectEnvironmentClass {
  return create(ProjectEnvironmentClassSchema, { environmentClass });
}

/**
 * Returns the project after an update. Fields that are absent from the request do not change. Returns the given
 * object when nothing changes.
 * @throws DomainError PENDING_DELETION
 */
export function updatedProject(present: Project, update: UpdateProjectRequest, now: number): Project {
  requireProjectNotPendingDeletion(present);
  const project = clone(ProjectSchema, present);
  if (project.metadata) {
    if (update.name !== undefined) project.metadata.name = update.name;
    if (update.annotations) project.metadata.annotations = { ...update.annotations.values };
  }
  if (update.initializer) project.initializer = update.initializer;
  if (update.devcontainerFilePath !== undefined) project.devcontainerFilePath = update.devcontainerFilePath;
  if (update.automationsFilePath !== undefined) project.automationsFilePath = update.automationsFilePath;
  if (update.technicalDescription !== undefined) project.technicalDescription = update.technicalDescription;
  if (update.prebuildConfiguration) {
    project.prebuildConfiguration = completePrebuilds(
      update.prebuildConfiguration,
      present.metadata?.creator,
    );
  }
  if (update.recommendedEditors) {
    if (Object.keys(update.recommendedEditors.editors).length > 0) {
      project.recommendedEditors = update.recommendedEditors;
    } else {
      delete project.recommendedEditors;
    }
  }
  return changedAt(present, project, now);
}

/** Returns a changed project with the time of the change, or the given one when both are equal. */
function changedAt(present: Project, project: Project, now: number): Project {
  if (equals(ProjectSchema, present, project)) return present;
  if (project.metadata) project.metadata.updatedAt = timestampFromMs(now);
  return project;
}

/**
 * Returns the project with a new list of environment classes, or the given object when the list is the same.
 * @throws DomainError PENDING_DELETION; VALUE_UNUSABLE for an entry that is duplicate or empty
 */
export function withEnvironmentClasses(
  present: Project,
  classes: readonly ProjectEnvironmentClass[],
  now: number,
): Project {
  requireProjectNotPendingDeletion(present);
  const seen = new Set<string>();
  for (const [index, { environmentClass }] of classes.entries()) {
    const field = `projectEnvironmentClasses[${index}]`;
    if (environmentClass.case === undefined || environmentClass.value === false) {
      throw valueUnusable(field, `${field} must name an environment class or set localRunner to true`);
    }
    const key = String(environmentClass.value);
    if (seen.has(key)) throw valueUnusable(field, `${field} is in the list twice`);
    seen.add(key);
  }
  const project = clone(ProjectSchema, present);
  setEnvironmentClasses(project, classes);
  return changedAt(present, project, now);
}

/** Returns the project marked for removal; undefined when it is already marked. */
export function deletedProject(present: Project, now: number): Project | undefined {
  if (present.desiredPhase === ProjectPhase.DELETED) return undefined;
  const project = clone(ProjectSchema, present);
  project.desiredPhase = ProjectPhase.DELETED;
  if (project.metadata) project.metadata.updatedAt = timestampFromMs(now);
  return project;
}

/**
 * Requires that a project is not marked for removal.
 * @throws DomainError PENDING_DELETION
 */
export function requireProjectNotPendingDeletion(project: Pick<Project, "desiredPhase">): void {
  if (project.desiredPhase === ProjectPhase.DELETED) throw pendingDeletion("project");
}

/** Returns the text that `search` matches: one folded line each for the name, the id and every repository name. */
export function projectSearchText(project: Project): string {
  const repositories = (project.initializer?.specs ?? []).map(({ spec }) => repositoryOf(spec));
  return fold([project.metadata?.name ?? "", project.id, ...new Set(repositories)].join("\n"));
}

/** Returns the name of the repository of a source; empty when there is none. */
function repositoryOf(spec: EnvironmentInitializer_Spec["spec"] | undefined): string {
  if (spec?.case === "git") return repositoryName(spec.value.remoteUri);
  return spec?.case === "contextUrl" ? repositoryOfPage(spec.value.url) : "";
}

/** Returns the name of the repository that a page's address leads to; empty when there is none. */
export function repositoryOfPage(url: string): string {
  return repositoryName(sourceOfPage(url).remoteUri);
}

/** Returns all forms of all remotes that an exact match may use. */
export function projectRemotes(project: Project): string[] {
  return [...new Set(gitRemotes(project).flatMap(remoteForms))];
}

function gitRemotes(project: Project): string[] {
  return (project.initializer?.specs ?? []).flatMap(({ spec }) =>
    spec.case === "git" ? [spec.value.remoteUri] : [],
  );
}

function nameFromInitializer(initializer: EnvironmentInitializer | undefined): string {
  const repository = repositoryOf(initializer?.specs[0]?.spec);
  const name = [...repository.replace(/\p{Cc}/gu, "")].slice(0, NAME_MAX_CHARACTERS).join("");
  if (name === "") {
    throw valueUnusable(
      "name",
      "no repository name can be read from the initializer: give the project a name",
    );
  }
  return name;
}

function completePrebuilds(
  configuration: ProjectPrebuildConfiguration,
  creator: Subject | undefined,
): ProjectPrebuildConfiguration {
  const complete = clone(ProjectPrebuildConfigurationSchema, configuration);
  complete.timeout ??= create(DurationSchema, { seconds: PREBUILD_TIMEOUT_DEFAULT_SECONDS });
  if (creator) complete.executor ??= creator;
  return complete;
}

function setEnvironmentClasses(project: Project, classes: readonly ProjectEnvironmentClass[]): void {
  project.environmentClasses = classes.toSorted((one, other) => one.order - other.order);
  project.environmentClass = project.environmentClasses[0] ?? create(ProjectEnvironmentClassSchema);
}
