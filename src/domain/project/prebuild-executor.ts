import { equals } from "@bufbuild/protobuf";
import { EnvironmentInitializerSchema } from "#gen/service/v1/environment_pb.js";
import { Principal } from "#gen/service/v1/identity_pb.js";
import type { Project } from "#gen/service/v1/project_pb.js";
import type { UpdateProjectRequest } from "#gen/service/v1/project_service_pb.js";
import { permissionDenied, valueUnusable } from "../error.ts";
import type { Caller } from "../identity/caller.ts";
import { isSameSubject } from "../source/source-trust.ts";

/**
 * Requires that a change of a project's prebuilds does not use another person's credentials to clone a source of the
 * caller's choice, as {@link requireMayRunAs} does for workflows.
 * @param before undefined for a new project
 * @throws DomainError VALUE_UNUSABLE for an executor that is a person, unless that person is the caller or already
 * the executor, or the caller is an administrator and that person the project's creator; PERMISSION_DENIED when a
 * caller who is neither an administrator nor the executor changes the source
 */
export function requireMayPrebuildAs(before: Project | undefined, after: Project, caller: Caller): void {
  const executor = after.prebuildConfiguration?.executor;
  if (executor?.principal !== Principal.USER || executor.id === caller.subject.id) return;
  // A group that may change the project may not use its creator's credentials.
  const creator = caller.role === "administrator" ? after.metadata?.creator : undefined;
  const known = [creator, before?.prebuildConfiguration?.executor];
  if (!known.some((subject) => isSameSubject(subject, executor))) {
    throw valueUnusable(
      "prebuildConfiguration.executor",
      "prebuilds run as the caller, the project's creator or a service account of the organization",
    );
  }
  if (!before || caller.role === "administrator" || hasSameSource(before, after)) return;
  throw permissionDenied(
    "update_project",
    "the project's prebuilds run as another person: name yourself or a service account as their executor with this change",
  );
}

/**
 * Requires that prebuilds run as a user or a service account.
 * @throws DomainError VALUE_UNUSABLE
 */
export function requirePrebuildPrincipal(principal: Principal): void {
  if (principal === Principal.USER || principal === Principal.SERVICE_ACCOUNT) return;
  throw valueUnusable(
    "prebuildConfiguration.executor",
    "prebuilds run as a user or a service account of the organization",
  );
}

/**
 * Returns whether an update makes its caller the last setter of the project's source: it sends an initializer, even
 * an unchanged one, or makes the caller the executor whose credentials clone for prebuilds.
 */
export function becomesSourceSetter(
  before: Project,
  { initializer, prebuildConfiguration }: Pick<UpdateProjectRequest, "initializer" | "prebuildConfiguration">,
  { subject }: Pick<Caller, "subject">,
): boolean {
  if (initializer) return true;
  const makesCallerExecutor = isSameSubject(prebuildConfiguration?.executor, subject);
  return makesCallerExecutor && !isSameSubject(before.prebuildConfiguration?.executor, subject);
}

function hasSameSource({ initializer: before }: Project, { initializer: after }: Project): boolean {
  if (!before || !after) return before === after;
  return equals(EnvironmentInitializerSchema, before, after);
}
