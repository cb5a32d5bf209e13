import { Principal, type Subject } from "#gen/service/v1/identity_pb.js";
import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import { executorUnfit, valueUnusable } from "../error.ts";
import type { Caller, Role } from "./caller.ts";
import { isServiceAccountSuspended } from "./service-account.ts";

/** The stored values that determine whether a service account may act; times in milliseconds since 1970 UTC. */
export interface ServiceAccountState {
  /** 1 for one that was suspended. */
  readonly suspended: number;
  readonly valid_until: number;
}

/** Returns whether a service account may act at `now`; false for one that does not exist. */
export function isActiveServiceAccount(account: ServiceAccountState | undefined, now: number): boolean {
  return (
    account !== undefined && account.suspended === 0 && !isServiceAccountSuspended(account.valid_until, now)
  );
}

/**
 * Requires that a service account may act as an executor.
 * @param account undefined for one that does not exist
 * @throws DomainError EXECUTOR_UNFIT
 */
export function requireActiveServiceAccount(
  id: string,
  account: ServiceAccountState | undefined,
  now: number,
): void {
  if (isActiveServiceAccount(account, now)) return;
  throw executorUnfit(
    id,
    "the executor is a service account that is suspended, ended or gone: name another executor",
  );
}

/**
 * Returns the role in which a user acts as an executor.
 * @param member undefined for a user who is no member
 * @param account `blocked_at` is set for one that is blocked, or whose member is suspended
 * @throws DomainError EXECUTOR_UNFIT for a user who is no member, or whose account is blocked
 */
export function requireActiveMember<A extends { readonly blocked_at: number | null }>(
  id: string,
  member: { readonly role: number } | undefined,
  account: A | undefined,
): { readonly role: Role; readonly account: A } {
  if (!member) {
    throw executorUnfit(id, "the executor is no member of the organization: name another executor");
  }
  if (!account || account.blocked_at !== null) {
    throw executorUnfit(
      id,
      "the account of the executor is blocked, or suspended in the organization: lift that, or name another executor",
    );
  }
  return { role: member.role === OrganizationRole.ADMIN ? "administrator" : "member", account };
}

/** Returns the executor of an execution. @throws DomainError EXECUTOR_UNFIT when it has none */
export function requireExecutor(executor: Subject | undefined): Subject {
  if (!executor) throw executorUnfit("", "the execution has no executor");
  return executor;
}

/**
 * Returns whether a caller names itself as the executor of a workflow; otherwise it names a service
 * account, which must exist and may act.
 * @throws DomainError VALUE_UNUSABLE for another user
 */
export function isOwnExecutor(caller: Pick<Caller, "subject">, { id, principal }: Subject): boolean {
  if (id === caller.subject.id && principal === caller.subject.principal) return true;
  if (principal === Principal.SERVICE_ACCOUNT && id !== "") return false;
  throw valueUnusable(
    "executor",
    "a workflow runs as the caller or as a service account of the organization",
  );
}

/**
 * Requires that a service account may become the executor of a workflow.
 * @throws DomainError EXECUTOR_UNFIT
 */
export function requireMayBecomeExecutor(id: string, account: ServiceAccountState, now: number): void {
  if (isActiveServiceAccount(account, now)) return;
  throw executorUnfit(
    id,
    "the service account is suspended, or its validity has ended: choose another executor",
  );
}
