import { AgentExecutionFailureReason } from "#gen/service/v1/agent_pb.js";
import { Principal } from "#gen/service/v1/identity_pb.js";
import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import { notFound } from "../../domain/error.ts";
import { requireOtherAdministrators, requireRole } from "../../domain/identity/member.ts";
import { removeReviewDraftsOf } from "../../store/agent/agent-review-draft.ts";
import { removeMembershipsOf } from "../../store/identity/group-membership.ts";
import type { StoredMember } from "../../store/identity/member.ts";
import {
  countOtherAdministrators,
  findMember,
  findMemberOfAccount,
  insertMember,
  updateMember,
} from "../../store/identity/member.ts";
import { removeSessionsOf } from "../../store/identity/session.ts";
import { findTokens, removeToken } from "../../store/identity/token.ts";
import { removeSecretsOf } from "../../store/policy/secret.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { haltAgentExecutions } from "../agent/halt-agent-execution.ts";
import { removeHostTokensOf } from "../runner/host-token.ts";
import { revokeExecutionsOfExecutor } from "../workflow/execution/execution-cancel.ts";

/** The failure of agent executions whose creator has left the organization. */
const USER_LEFT = {
  reason: AgentExecutionFailureReason.SERVICE,
  message: "its creator is no member of the organization any more",
} as const;

/**
 * Adds an account to the scope's organization. An account that left earlier gets its former user id, and so owns its
 * former resources again.
 *
 * @param newUserId the user id for an account that was never a member
 * @returns the member; undefined when the account is already a member
 */
export async function joinOrganization(
  tx: WriteTransaction,
  scope: Scope,
  accountId: string,
  role: OrganizationRole,
  newUserId = tx.newId(),
): Promise<StoredMember | undefined> {
  const existing = await findMemberOfAccount(tx.db, scope, accountId);
  if (!existing) return insertMember(tx, scope, { id: newUserId, account_id: accountId, role });
  if (existing.left_at === null) return undefined;
  const member = {
    ...existing,
    role,
    created_at: tx.now,
    left_at: null,
    suspended_at: null,
    external_id: null,
  };
  await updateMember(tx, scope, existing, member);
  return member;
}

/**
 * Sets the role of a member of the scope's organization.
 *
 * @throws DomainError VALUE_UNUSABLE, NOT_FOUND or LAST_ADMINISTRATOR
 */
export async function setMemberRole(
  tx: WriteTransaction,
  scope: Scope,
  userId: string,
  role: OrganizationRole,
): Promise<void> {
  requireRole(role);
  const member = await getMember(tx, scope, userId);
  if (member.role === role) return;
  await requireAnotherAdministrator(tx, scope, member);
  await updateMember(tx, scope, member, { ...member, role });
}

/**
 * Ends a membership of the scope's organization. The user's resources remain and keep it as their creator. Removes
 * its tokens, which must not become valid again when the account rejoins, and its host credentials, secrets, drafts
 * of reviews and group memberships. Its agent executions and the executions that run as the user stop immediately.
 *
 * @throws DomainError NOT_FOUND or LAST_ADMINISTRATOR
 */
export async function removeMembership(tx: WriteTransaction, scope: Scope, userId: string): Promise<void> {
  const member = await getMember(tx, scope, userId);
  await requireAnotherAdministrator(tx, scope, member);
  await removeSessionsOf(tx, scope, userId);
  for (const token of await findTokens(tx.db, scope, "personal", userId)) {
    await removeToken(tx, scope, token);
  }
  await removeHostTokensOf(tx, scope, { id: userId, principal: Principal.USER });
  await removeSecretsOf(tx, scope, userId);
  await removeReviewDraftsOf(tx, scope, userId);
  await removeMembershipsOf(tx, scope, userId);
  await haltAgentExecutions(tx, scope, { creatorId: userId }, { failure: USER_LEFT, immediate: true });
  await revokeExecutionsOfExecutor(tx, scope, userId);
  await updateMember(tx, scope, member, { ...member, left_at: tx.now });
}

/**
 * Requires another administrator. It counts in the transaction of the change: two concurrent changes cannot remove
 * the last two.
 */
export async function requireAnotherAdministrator(
  tx: WriteTransaction,
  scope: Scope,
  { id, role }: StoredMember,
): Promise<void> {
  if (role !== OrganizationRole.ADMIN) return;
  requireOtherAdministrators(scope.organizationId, await countOtherAdministrators(tx.db, scope, id));
}

async function getMember(tx: WriteTransaction, scope: Scope, userId: string): Promise<StoredMember> {
  const member = await findMember(tx.db, scope, userId);
  if (!member) throw notFound("user");
  return member;
}
