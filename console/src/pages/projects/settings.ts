import {
  create,
  fromJsonString,
  type JsonObject,
  type MessageInitShape,
  toJson,
  toJsonString,
} from "@bufbuild/protobuf";
import {
  type EnvironmentInitializer_Spec as Spec,
  EnvironmentInitializer_SpecSchema as SpecSchema,
} from "#gen/service/v1/environment_pb.js";
import type { Project } from "#gen/service/v1/project_pb.js";
import { type UpdateProjectRequest, UpdateProjectRequestSchema } from "#gen/service/v1/project_service_pb.js";

/** The fields that a project's settings edit, by their JSON names. */
const FIELDS = ["name", "initializer", "devcontainerFilePath", "automationsFilePath"] as const;

/** Returns the settings of a project, as the message that changes them. */
export const settingsOf = (project: Project): UpdateProjectRequest =>
  create(UpdateProjectRequestSchema, {
    projectId: project.id,
    name: project.metadata?.name ?? "",
    initializer: project.initializer ?? {},
    devcontainerFilePath: project.devcontainerFilePath,
    automationsFilePath: project.automationsFilePath,
  });

/** Returns the request with only the differences between two settings; undefined when they are the same. */
export function changeOf(
  before: UpdateProjectRequest,
  after: UpdateProjectRequest,
): MessageInitShape<typeof UpdateProjectRequestSchema> | undefined {
  const [one, other] = [jsonOf(before), jsonOf(after)];
  const changed = FIELDS.filter((field) => JSON.stringify(one[field]) !== JSON.stringify(other[field]));
  if (changed.length === 0) return undefined;
  return {
    projectId: after.projectId,
    ...Object.fromEntries(changed.map((field) => [field, after[field]])),
  };
}

/** Compares settings, and writes and reads them as text. */
export const SETTINGS = {
  isSame: (one: UpdateProjectRequest, other: UpdateProjectRequest) => changeOf(one, other) === undefined,
  toText: (settings: UpdateProjectRequest) => toJsonString(UpdateProjectRequestSchema, settings),
  fromText: (text: string) => fromJsonString(UpdateProjectRequestSchema, text),
};

const jsonOf = (settings: UpdateProjectRequest) => toJson(UpdateProjectRequestSchema, settings) as JsonObject;

export type SourceKind = "git" | "contextUrl";

/** Returns an empty source. */
export const emptySource = (kind: SourceKind): Spec =>
  create(SpecSchema, { spec: kind === "git" ? { case: kind, value: {} } : { case: kind, value: {} } });
