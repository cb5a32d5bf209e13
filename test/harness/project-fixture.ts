import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { expect } from "@jest/globals";
import { EnvironmentInitializerSchema } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import {
  type Project,
  ProjectEnvironmentClassSchema,
  ProjectPrebuildConfigurationSchema,
} from "#gen/service/v1/project_pb.js";
import { UpdateProjectRequestSchema } from "#gen/service/v1/project_service_pb.js";
import { type CreationContext, newProject, updatedProject } from "../../src/domain/project/project.ts";

export const CREATED_MS = Date.UTC(2026, 0, 1);
export const LATER_MS = CREATED_MS + 60_000;

export const creator = create(SubjectSchema, {
  id: "0192d3c0-0000-7000-8000-0000000000c1",
  principal: Principal.USER,
});
export const other = create(SubjectSchema, {
  id: "0192d3c0-0000-7000-8000-0000000000c2",
  principal: Principal.USER,
});
export const origin: CreationContext = {
  id: "0192d3c0-0000-7000-8000-00000000000a",
  organizationId: "0192d3c0-0000-7000-8000-000000000001",
  creator,
  now: CREATED_MS,
};
export const CLASS_A = "0192d3c0-0000-7000-8000-0000000000a1";
export const CLASS_B = "0192d3c0-0000-7000-8000-0000000000a2";

export const git = (...remotes: string[]) =>
  create(EnvironmentInitializerSchema, {
    specs: remotes.map((remoteUri) => ({ spec: { case: "git" as const, value: { remoteUri } } })),
  });
export const page = (url: string) =>
  create(EnvironmentInitializerSchema, { specs: [{ spec: { case: "contextUrl", value: { url } } }] });
export const entry = (id: string | true, order = 0) =>
  create(ProjectEnvironmentClassSchema, {
    environmentClass:
      id === true ? { case: "localRunner", value: true } : { case: "environmentClassId", value: id },
    order,
  });

/** Returns a project with a value in every field. */
export const fullProject = (): Project => {
  const project = newProject(
    {
      name: "harbour",
      initializer: git("https://git.example.org/team/harbour.git"),
      devcontainerFilePath: ".devcontainer/devcontainer.json",
      automationsFilePath: "automations.yaml",
      technicalDescription: "a harbour",
      prebuildConfiguration: create(ProjectPrebuildConfigurationSchema, {
        enabled: true,
        environmentClassIds: [CLASS_A],
        timeout: { seconds: 600n },
        executor: other,
      }),
      annotations: { team: "docks" },
      environmentClasses: [entry(CLASS_A)],
    },
    origin,
  );
  return updatedProject(
    project,
    create(UpdateProjectRequestSchema, { recommendedEditors: { editors: { vim: { versions: ["9"] } } } }),
    CREATED_MS,
  );
};
export const update = (
  request: MessageInitShape<typeof UpdateProjectRequestSchema>,
  present = fullProject(),
) => updatedProject(present, create(UpdateProjectRequestSchema, request), LATER_MS);

export const failure = (run: () => unknown): unknown => {
  try {
    return run();
  } catch (error) {
    return error;
  }
};
export const withReason = (reason: ErrorReason, metadata: Record<string, string> = {}) =>
  expect.objectContaining({ reason, metadata });
export const pending = withReason(ErrorReason.PENDING_DELETION, { resource: "project" });
