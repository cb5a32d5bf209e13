import type { EnvironmentSpec } from "#gen/service/v1/environment_pb.js";
import { Principal, type Subject } from "#gen/service/v1/identity_pb.js";
import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import type { Project } from "#gen/service/v1/project_pb.js";
import type { Caller } from "../../domain/identity/caller.ts";
import { isActiveServiceAccount } from "../../domain/identity/executor.ts";
import {
  requireTrustedSetters,
  type SourceKind,
  type SourceSetter,
  untrustedSetter,
} from "../../domain/source/source-trust.ts";
import { findAccount } from "../../store/identity/account.ts";
import { findMember } from "../../store/identity/member.ts";
import { findServiceAccount } from "../../store/identity/service-account.ts";
import { findSourceSetters } from "../../store/identity/source-setter.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";

/** A use of an executor's credential at a host for a source that others may have set. */
export interface CredentialRequest {
  readonly host: string;
  readonly executor: Subject;
  /** As in SourceUse. */
  readonly namedBy: Subject | undefined;
  readonly setters: readonly Subject[];
  /** Possible origins of the source, for the advice in the error. */
  readonly kinds: readonly SourceKind[];
}

/**
 * Requires that the executor's credential may be used on a source, depending on the current rights of those who set
 * the source.
 *
 * @throws DomainError CREDENTIAL_WITHHELD
 */
export async function requireTrustedSource(
  tx: WriteTransaction,
  scope: Scope,
  { host, executor, namedBy, setters, kinds }: CredentialRequest,
): Promise<void> {
  requireTrustedSetters(host, { executor, namedBy, setters: await withRoles(tx, scope, setters) }, kinds);
}

/** Returns whether a subject's own credentials and secrets may be used on content that others control. */
export async function areTrustedBy(
  tx: WriteTransaction,
  scope: Scope,
  executor: Subject,
  others: readonly Subject[],
): Promise<boolean> {
  const setters = await withRoles(tx, scope, others);
  return untrustedSetter({ executor, namedBy: undefined, setters }) === undefined;
}

async function withRoles(
  tx: WriteTransaction,
  scope: Scope,
  subjects: readonly Subject[],
): Promise<SourceSetter[]> {
  const setters: SourceSetter[] = [];
  for (const subject of subjects) setters.push({ subject, role: await findSetterRole(tx, scope, subject) });
  return setters;
}

/**
 * Returns the subjects that set the source of an environment that the caller creates: the caller when the request has
 * a source, otherwise those that last set the project's source.
 */
export async function findSettersForSpec(
  tx: WriteTransaction,
  caller: Caller,
  project: Project | undefined,
  asked: EnvironmentSpec | undefined,
): Promise<readonly Subject[]> {
  if (!project?.initializer || asked?.content?.initializer) return [caller.subject];
  return findSourceSetters(tx.db, caller, "project", project);
}

async function findSetterRole(
  { db, now }: WriteTransaction,
  scope: Scope,
  { id, principal }: Subject,
): Promise<SourceSetter["role"]> {
  if (principal === Principal.SERVICE_ACCOUNT) {
    return isActiveServiceAccount(await findServiceAccount(db, scope, id), now) ? "service_account" : "other";
  }
  if (principal !== Principal.USER) return "other";
  const member = await findMember(db, scope, id);
  if (member?.role !== OrganizationRole.ADMIN || member.suspended_at !== null) return "other";
  const account = await findAccount(db, member.account_id);
  return account && account.blocked_at === null ? "administrator" : "other";
}
