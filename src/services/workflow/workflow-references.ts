import type { Subject } from "#gen/service/v1/identity_pb.js";
import type { WorkflowTriggerContext } from "#gen/service/v1/workflow_pb.js";
import { notFound } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { isOwnExecutor, requireMayBecomeExecutor } from "../../domain/identity/executor.ts";
import { requireProjectNotPendingDeletion } from "../../domain/project/project.ts";
import { requireClassEnabled } from "../../domain/runner/environment-class.ts";
import { findServiceAccount } from "../../store/identity/service-account.ts";
import { findDesiredPhases } from "../../store/project/project.ts";
import { findEnvironmentClasses } from "../../store/runner/environment-class.ts";
import type { Reader, Scope, WriteTransaction } from "../../store/store.ts";

/**
 * Checks that the resources that contexts name exist in the organization.
 *
 * @throws DomainError NOT_FOUND for an unknown project or environment class; PENDING_DELETION for a project that is
 * marked for removal; PHASE_UNSUITABLE for a disabled class
 */
export async function checkContextReferences(
  db: Reader,
  scope: Scope,
  contexts: readonly WorkflowTriggerContext[],
): Promise<void> {
  const projectIds = contexts.flatMap(({ context }) =>
    context.case === "projects" ? context.value.projectIds : [],
  );
  const projects = await findDesiredPhases(db, scope, projectIds);
  requireExisting(projectIds, projects, "project");
  for (const project of projects) requireProjectNotPendingDeletion(project);
  const classIds = contexts.flatMap(({ context }) =>
    context.case === "repositories" ? context.value.environmentClassId || [] : [],
  );
  const classes = await findEnvironmentClasses(db, scope, classIds);
  requireExisting(classIds, classes, "environment class");
  for (const each of classes) requireClassEnabled(each);
}

/**
 * Checks that the caller may make a subject the executor. An unchanged executor is not checked here but when the
 * workflow starts.
 *
 * @throws DomainError VALUE_UNUSABLE for subjects other than the caller and service accounts; NOT_FOUND for an
 * unknown service account; EXECUTOR_UNFIT for a suspended one
 */
export async function checkExecutor(
  { db, now }: WriteTransaction,
  caller: Caller,
  executor: Subject,
): Promise<void> {
  if (isOwnExecutor(caller, executor)) return;
  const account = await findServiceAccount(db, caller, executor.id);
  if (!account) throw notFound("service account");
  requireMayBecomeExecutor(executor.id, account, now);
}

function requireExisting(
  named: readonly string[],
  found: readonly { readonly id: string }[],
  resource: string,
) {
  const ids = new Set(found.map(({ id }) => id));
  if (named.some((id) => !ids.has(id))) throw notFound(resource);
}
