import { Principal, type Subject } from "#gen/service/v1/identity_pb.js";
import type { Caller } from "../../domain/identity/caller.ts";
import { requireActiveMember, requireActiveServiceAccount } from "../../domain/identity/executor.ts";
import { findMember, findMemberAtWork } from "../../store/identity/member.ts";
import { findServiceAccount } from "../../store/identity/service-account.ts";
import type { Scope, Snapshot, WriteTransaction } from "../../store/store.ts";

/**
 * Returns the executor of a workflow or of prebuilds as a caller with its current role. It has no token, so `tokenId`
 * is empty.
 *
 * @throws DomainError EXECUTOR_UNFIT when its account is blocked, it left the organization, or its service account is
 * suspended or deleted
 */
export async function getExecutorAsCaller(tx: Snapshot, scope: Scope, subject: Subject): Promise<Caller> {
  const base = { organizationId: scope.organizationId, subject, tokenId: "", readOnly: false };
  if (subject.principal === Principal.SERVICE_ACCOUNT) {
    requireActiveServiceAccount(subject.id, await findServiceAccount(tx.db, scope, subject.id), tx.now);
    return { ...base, role: "service_account", accountId: "" };
  }
  const member = await findMemberAtWork(tx.db, scope, subject.id);
  const { role, account } = requireActiveMember(subject.id, member, member);
  return { ...base, role, accountId: account.account_id };
}

/**
 * Returns the id of the account that is responsible for an executor, even if the executor may not act; null for a
 * service account or a user who left.
 */
export async function findAccountOfExecutor(
  tx: WriteTransaction,
  scope: Scope,
  { id, principal }: Subject,
): Promise<string | null> {
  if (principal !== Principal.USER) return null;
  return (await findMember(tx.db, scope, id))?.account_id ?? null;
}
