import { create } from "@bufbuild/protobuf";
import { type BlockAccountResponse, BlockAccountResponseSchema } from "#gen/service/v1/account_service_pb.js";
import { AgentExecutionFailureReason } from "#gen/service/v1/agent_pb.js";
import { isAdministrator } from "../../domain/access/account-block.ts";
import { notFound } from "../../domain/error.ts";
import { requireOtherAdministrators } from "../../domain/identity/member.ts";
import { findUsersOfAccount, updateAccountBlock } from "../../store/access/account-block.ts";
import {
  findBlockReceipt,
  insertBlockReceipt,
  removeBlockReceipt,
} from "../../store/access/block-receipt.ts";
import { findAccount, findMemberships } from "../../store/identity/account.ts";
import { countOtherAdministrators } from "../../store/identity/member.ts";
import { serviceAccountTokenOfRow } from "../../store/identity/service-account-token.ts";
import { removeSessionsOf } from "../../store/identity/session.ts";
import { cancelSubscriptions } from "../../store/identity/subscription.ts";
import { disableTokensOfCreator } from "../../store/identity/token-disabling.ts";
import type { Lock, Reader, WriteTransaction } from "../../store/store.ts";
import { findWorkflowsOfExecutor } from "../../store/workflow/workflow.ts";
import { haltAgentExecutions } from "../agent/halt-agent-execution.ts";
import { revokeExecutionsOfExecutor } from "../workflow/execution/execution-cancel.ts";
import { stopEnvironmentsOfAccount } from "./environment-stops.ts";

/**
 * Returns the function that finds the locks for a change of an account: the lock of all accounts, so that it cannot
 * join another organization in the meantime, and those of the organizations that it is or was a member of.
 */
export function locksOfAccount(accountId: string): (db: Reader) => Promise<Lock[]> {
  return async (db) => {
    const users = await findUsersOfAccount(db, accountId);
    return [null, ...users.map(({ organizationId }) => organizationId)];
  };
}

/**
 * Blocks an account and stops everything that acts for it. Its access, tokens and agent executions end in this
 * transaction. jobs/stops.ts stops the environments and executions that exceed the transaction's budget. The caller
 * must have checked the permission.
 *
 * @returns the receipt; for an account that is already blocked, the receipt of the first block
 * @throws DomainError NOT_FOUND, or LAST_ADMINISTRATOR of one of its organizations
 */
export async function blockAccount(
  tx: WriteTransaction,
  accountId: string,
  reason: string,
): Promise<BlockAccountResponse> {
  const account = await findAccount(tx.db, accountId);
  if (!account) throw notFound("account");
  const memberships = await findMemberships(tx.db, accountId);
  const organizationIds = memberships.map(({ organizationId }) => organizationId);
  const existing = account.blocked_at === null ? undefined : await findBlockReceipt(tx.db, accountId);
  if (existing) {
    await updateAccountBlock(tx, account, { blockedAt: account.blocked_at, organizationIds, reason });
    return existing;
  }
  for (const { organizationId, userId } of memberships.filter(isAdministrator)) {
    requireOtherAdministrators(
      organizationId,
      await countOtherAdministrators(tx.db, { organizationId }, userId),
    );
  }
  for (const { userId, organizationId } of await findUsersOfAccount(tx.db, accountId)) {
    await removeSessionsOf(tx, { organizationId }, userId);
  }
  const tokens = await disableTokensOfCreator(tx, accountId);
  // Before the environments, so that the failure names the block and not the stopped environment.
  const agentExecutionIds = await stopAgentExecutionsOfAccount(tx, accountId);
  const stopped = await stopEnvironmentsOfAccount(tx, accountId);
  const revoked = await revokeExecutionsOfAccount(tx, accountId);
  const affectedIds = new Set([
    ...tokens.map(({ organization_id }) => organization_id),
    ...stopped.organizationIds,
    ...revoked.organizationIds,
    ...agentExecutionIds.keys(),
  ]);
  const formerOrganizationIds = [...affectedIds].filter((id) => !organizationIds.includes(id));
  await updateAccountBlock(tx, account, {
    blockedAt: tx.now,
    organizationIds,
    formerOrganizationIds,
    workflowIds: revoked.workflowIds,
    agentExecutionIds,
    reason,
  });
  const receipt = create(BlockAccountResponseSchema, {
    environmentsStopped: stopped.count,
    subscriptionsCancelled: await cancelSubscriptions(tx, accountId),
    disabledServiceAccountTokens: tokens
      .filter(({ kind }) => kind === "service_account")
      .map(serviceAccountTokenOfRow),
  });
  await insertBlockReceipt(tx, accountId, receipt);
  return receipt;
}

/**
 * Unblocks an account. It can act again, but what the block stopped or revoked remains so. Nothing changes for an
 * account that is not blocked.
 *
 * @throws DomainError NOT_FOUND
 */
export async function unblockAccount(tx: WriteTransaction, accountId: string): Promise<void> {
  const account = await findAccount(tx.db, accountId);
  if (!account) throw notFound("account");
  if (account.blocked_at === null) return;
  const memberships = await findMemberships(tx.db, accountId);
  const organizationIds = memberships.map(({ organizationId }) => organizationId);
  await updateAccountBlock(tx, account, { blockedAt: null, organizationIds });
  await removeBlockReceipt(tx, accountId);
}

/**
 * Stops the agent executions of an account without waiting for their runners.
 *
 * @returns the ids of the stopped ones, by organization id
 */
async function stopAgentExecutionsOfAccount(
  tx: WriteTransaction,
  accountId: string,
): Promise<Map<string, string[]>> {
  const ids = new Map<string, string[]>();
  const failure = {
    reason: AgentExecutionFailureReason.SERVICE,
    message: "the account of its creator was blocked",
  };
  for (const { organizationId } of await findUsersOfAccount(tx.db, accountId)) {
    const stopped = await haltAgentExecutions(
      tx,
      { organizationId },
      { accountId },
      { failure, immediate: true },
    );
    if (stopped.length > 0) ids.set(organizationId, stopped);
  }
  return ids;
}

/**
 * Stops the executions that run as an account, in all organizations. Its workflows need no change:
 * getExecutorAsCaller rejects a blocked account.
 *
 * @returns the organizations with stopped executions, and by organization id the workflows whose executor is now
 * blocked
 */
async function revokeExecutionsOfAccount(
  tx: WriteTransaction,
  accountId: string,
): Promise<{ organizationIds: string[]; workflowIds: Map<string, string[]> }> {
  const organizationIds: string[] = [];
  const workflowIds = new Map<string, string[]>();
  for (const { userId, organizationId } of await findUsersOfAccount(tx.db, accountId)) {
    const scope = { organizationId };
    if ((await revokeExecutionsOfExecutor(tx, scope, userId)) > 0) organizationIds.push(organizationId);
    const workflows = await findWorkflowsOfExecutor(tx.db, scope, userId);
    workflowIds.set(
      organizationId,
      workflows.map(({ id }) => id),
    );
  }
  return { organizationIds, workflowIds };
}
