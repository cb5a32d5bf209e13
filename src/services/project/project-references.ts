import type { Environment } from "#gen/service/v1/environment_pb.js";
import { Principal } from "#gen/service/v1/identity_pb.js";
import type { Project } from "#gen/service/v1/project_pb.js";
import { RunnerKind } from "#gen/service/v1/runner_configuration_pb.js";
import { notFound, valueUnusable } from "../../domain/error.ts";
import { requireNoLocalClass } from "../../domain/runner/runner.ts";
import { findMember } from "../../store/identity/member.ts";
import { findServiceAccount } from "../../store/identity/service-account.ts";
import { findEnvironmentClasses } from "../../store/runner/environment-class.ts";
import { findRunner } from "../../store/runner/runner.ts";
import type { Reader, Scope } from "../../store/store.ts";

/**
 * Holds what a project names against what its organization has.
 *
 * @throws DomainError NOT_FOUND for a class or executor that the organization
 *   does not have; VALUE_UNUSABLE for an executor that is no principal to run as
 */
export async function checkProjectReferences(db: Reader, scope: Scope, project: Project): Promise<void> {
  const named = [
    ...project.environmentClasses.flatMap(({ environmentClass }) =>
      environmentClass.case === "environmentClassId" ? [environmentClass.value] : [],
    ),
    ...(project.prebuildConfiguration?.environmentClassIds ?? []),
  ];
  const found = new Set((await findEnvironmentClasses(db, scope, named)).map(({ id }) => id));
  if (named.some((id) => !found.has(id))) throw notFound("environment class");
  await checkExecutor(db, scope, project);
}

/**
 * Holds the environment classes that a project is to have against its organization's runners.
 *
 * @throws DomainError VALUE_UNUSABLE for a class of a local runner
 */
export async function requireNoLocalClasses(db: Reader, scope: Scope, project: Project): Promise<void> {
  const named = project.environmentClasses.flatMap(({ environmentClass }) =>
    environmentClass.case === "environmentClassId" ? [environmentClass.value] : [],
  );
  const classes = await findEnvironmentClasses(db, scope, named);
  for (const runnerId of new Set(classes.map((each) => each.runnerId))) {
    const runner = await findRunner(db, scope, runnerId);
    if (runner) requireNoLocalClass(runner);
  }
}

/** Whether an environment is on a runner of somebody's own machine. */
export async function isOnLocalRunner(db: Reader, scope: Scope, { metadata }: Environment): Promise<boolean> {
  const runner = metadata?.runnerId ? await findRunner(db, scope, metadata.runnerId) : undefined;
  return runner !== undefined && runner.kind !== RunnerKind.REMOTE;
}

async function checkExecutor(db: Reader, scope: Scope, project: Project): Promise<void> {
  const executor = project.prebuildConfiguration?.executor;
  const creator = project.metadata?.creator;
  if (!executor || (executor.id === creator?.id && executor.principal === creator.principal)) return;
  if (executor.principal === Principal.SERVICE_ACCOUNT) {
    if (!(await findServiceAccount(db, scope, executor.id))) throw notFound("service account");
    return;
  }
  if (executor.principal !== Principal.USER) {
    throw valueUnusable(
      "prebuildConfiguration.executor",
      "prebuilds run as a user or a service account of the organization",
    );
  }
  if (!(await findMember(db, scope, executor.id))) throw notFound("user");
}
