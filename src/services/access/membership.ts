import { AgentExecutionFailureReason } from "#gen/service/v1/agent_pb.js";
import { Principal } from "#gen/service/v1/identity_pb.js";
import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import { notFound } from "../../domain/error.ts";
import { requireOtherAdministrators, requireRole } from "../../domain/identity/member.ts";
import type { StoredMember } from "../../store/identity/member.ts";
import {
  countOtherAdministrators,
  findMember,
  findMemberOfAccount,
  insertMember,
  updateMember,
} from "../../store/identity/member.ts";
import { findTokens, removeToken } from "../../store/identity/token.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { haltAgentExecutions } from "../agent/halt-agent-execution.ts";
import { removeHostTokensOf } from "../runner/host-token.ts";
import { revokeExecutions } from "../workflow/execution/execution-cancel.ts";

/** Why the agent runs of a user that left end. */
const LEFT = {
  reason: AgentExecutionFailureReason.SERVICE,
  message: "its creator is no member of the organization any more",
} as const;

/**
 * Makes an account a member of the scope's organization. One that left joins
 * again as the user that it was, so that what it made is its own again.
 *
 * @returns the member; undefined when the account is one already
 */
export async function joinOrganization(
  tx: WriteTransaction,
  scope: Scope,
  accountId: string,
  role: OrganizationRole,
): Promise<StoredMember | undefined> {
  const known = await findMemberOfAccount(tx.db, scope, accountId);
  if (!known) return insertMember(tx, scope, { id: tx.newId(), account_id: accountId, role });
  if (known.left_at === null) return undefined;
  const member = { ...known, role, created_at: tx.now, left_at: null };
  await updateMember(tx, scope, known, member);
  return member;
}

/**
 * Gives a member of the scope's organization a role; the one that it has
 * changes nothing.
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
  const member = await present(tx, scope, userId);
  if (member.role === role) return;
  await requireAnotherAdministrator(tx, scope, member);
  await updateMember(tx, scope, member, { ...member, role });
}

/**
 * Ends a membership of the scope's organization. What the user made stays and
 * names it; the tokens that act for it go, so that none of them holds again
 * should the account ever join again, and so do the credentials stored for it.
 * Its agent runs and the executions that run as it stop at once.
 *
 * @throws DomainError NOT_FOUND or LAST_ADMINISTRATOR
 */
export async function removeMembership(tx: WriteTransaction, scope: Scope, userId: string): Promise<void> {
  const member = await present(tx, scope, userId);
  await requireAnotherAdministrator(tx, scope, member);
  for (const token of await findTokens(tx.db, scope, "personal", userId)) {
    await removeToken(tx, scope, token);
  }
  await removeHostTokensOf(tx, scope, { id: userId, principal: Principal.USER });
  await haltAgentExecutions(tx, scope, { creatorId: userId }, { failure: LEFT, immediate: true });
  await revokeExecutions(tx, scope, userId);
  await updateMember(tx, scope, member, { ...member, left_at: tx.now });
}

/** Counted in the transaction of the change: of two that would take the last two, one fails. */
async function requireAnotherAdministrator(
  tx: WriteTransaction,
  scope: Scope,
  { id, role }: StoredMember,
): Promise<void> {
  if (role !== OrganizationRole.ADMIN) return;
  requireOtherAdministrators(scope.organizationId, await countOtherAdministrators(tx.db, scope, id));
}

async function present(tx: WriteTransaction, scope: Scope, userId: string): Promise<StoredMember> {
  const member = await findMember(tx.db, scope, userId);
  if (!member) throw notFound("user");
  return member;
}
