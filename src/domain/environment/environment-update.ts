import { clone, create, equals } from "@bufbuild/protobuf";
import {
  type Environment,
  EnvironmentMetadataSchema,
  EnvironmentSchema,
  type EnvironmentSpec,
  EnvironmentSpec_AutomationsFileSchema,
  EnvironmentSpec_ContentSchema,
  EnvironmentSpec_DevContainerSchema,
  EnvironmentSpec_TimeoutSchema,
  EnvironmentSpecSchema,
} from "#gen/service/v1/environment_pb.js";
import type {
  UpdateEnvironmentRequest,
  UpdateEnvironmentRequest_Spec,
} from "#gen/service/v1/environment_service_pb.js";
import { valueUnusable } from "../error.ts";
import { MAX_ENVIRONMENT_NAME_CHARACTERS, requireEnvironmentNotPendingDeletion } from "./environment.ts";

/**
 * Returns the environment after an update; absent fields keep their values. Undefined when nothing changes. Only a
 * change of the spec raises the spec's version.
 * @throws DomainError PENDING_DELETION; VALUE_UNUSABLE for a name that no environment may have
 */
export function updatedEnvironment(
  present: Environment,
  { metadata, spec }: Pick<UpdateEnvironmentRequest, "metadata" | "spec">,
): Environment | undefined {
  requireEnvironmentNotPendingDeletion(present);
  const environment = clone(EnvironmentSchema, present);
  if (metadata?.name !== undefined) {
    if ([...metadata.name].length > MAX_ENVIRONMENT_NAME_CHARACTERS) {
      throw valueUnusable(
        "metadata.name",
        `a name has ${MAX_ENVIRONMENT_NAME_CHARACTERS} characters at most`,
      );
    }
    environment.metadata ??= create(EnvironmentMetadataSchema);
    environment.metadata.name = metadata.name;
  }
  if (spec) {
    environment.spec ??= create(EnvironmentSpecSchema);
    applySpec(environment.spec, spec);
    const isSame = present.spec && equals(EnvironmentSpecSchema, present.spec, environment.spec);
    if (!isSame) environment.spec.specVersion += 1n;
  }
  return equals(EnvironmentSchema, present, environment) ? undefined : environment;
}

/** Sets the fields that a request sets; a message whose fields are all unset is not created. */
function applySpec(spec: EnvironmentSpec, change: UpdateEnvironmentRequest_Spec): void {
  const { content, devcontainer, timeout, automationsFile } = change;
  const author = given({
    session: content?.session,
    gitUsername: content?.gitUsername,
    gitEmail: content?.gitEmail,
  });
  if (author) {
    spec.content = Object.assign(spec.content ?? create(EnvironmentSpec_ContentSchema), author);
  }
  const container = given({
    session: devcontainer?.session,
    devcontainerFilePath: devcontainer?.devcontainerFilePath,
  });
  if (container) {
    spec.devcontainer = Object.assign(
      spec.devcontainer ?? create(EnvironmentSpec_DevContainerSchema),
      container,
    );
  }
  const tasks = given({
    session: automationsFile?.session,
    automationsFilePath: automationsFile?.automationsFilePath,
  });
  if (tasks) {
    spec.automationsFile = Object.assign(
      spec.automationsFile ?? create(EnvironmentSpec_AutomationsFileSchema),
      tasks,
    );
  }
  if (timeout?.disconnected) {
    spec.timeout ??= create(EnvironmentSpec_TimeoutSchema);
    spec.timeout.disconnected = timeout.disconnected;
  }
}

/** Returns the fields that are set; undefined when none is. */
function given<T extends object>(fields: T): Partial<T> | undefined {
  const set = Object.entries(fields).filter(([, value]) => value !== undefined);
  return set.length === 0 ? undefined : (Object.fromEntries(set) as Partial<T>);
}
