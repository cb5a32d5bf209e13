import type { Environment } from "#gen/service/v1/environment_pb.js";
import { Principal } from "#gen/service/v1/identity_pb.js";
import type { Project } from "#gen/service/v1/project_pb.js";
import { RunnerKind } from "#gen/service/v1/runner_configuration_pb.js";
import { notFound } from "../../domain/error.ts";
import { requirePrebuildPrincipal } from "../../domain/project/prebuild-executor.ts";
import { requireNoLocalClass } from "../../domain/runner/runner.ts";
import { findMember } from "../../store/identity/member.ts";
import { findServiceAccount } from "../../store/identity/service-account.ts";
import { findEnvironmentClasses } from "../../store/runner/environment-class.ts";
import { findRunner } from "../../store/runner/runner.ts";
import type { Reader, Scope } from "../../store/store.ts";

/**
 * Checks that the resources that a project names exist in the organization.
 *
 * @throws DomainError NOT_FOUND for an unknown class or executor; VALUE_UNUSABLE for an executor that is neither a
 * user nor a service account
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
 * Requires that none of a project's environment classes belongs to a local runner.
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

/** Returns whether an environment is on a local runner. */
export async function isOnLocalRunner(db: Reader, scope: Scope, { metadata }: Environment): Promise<boolean> {
  const runner = metadata?.runnerId ? await findRunner(db, scope, metadata.runnerId) : undefined;
  return runner !== undefined && runner.kind !== RunnerKind.REMOTE;
}

async function checkExecutor(db: Reader, scope: Scope, project: Project): Promise<void> {
  const executor = project.prebuildConfiguration?.executor;
  const creator = project.metadata?.creator;
  if (!executor || (executor.id === creator?.id && executor.principal === creator.principal)) return;
  requirePrebuildPrincipal(executor.principal);
  if (executor.principal === Principal.SERVICE_ACCOUNT) {
    if (!(await findServiceAccount(db, scope, executor.id))) throw notFound("service account");
    return;
  }
  if (!(await findMember(db, scope, executor.id))) throw notFound("user");
}
