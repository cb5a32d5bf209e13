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
import { cancelSubscriptions } from "../../store/identity/subscription.ts";
import { disableTokensOfCreator } from "../../store/identity/token-disabling.ts";
import type { WriteTransaction } from "../../store/store.ts";
import { findWorkflowsOfExecutor } from "../../store/workflow/workflow.ts";
import { haltAgentExecutions } from "../agent/halt-agent-execution.ts";
import { revokeExecutions } from "../workflow/execution/execution-cancel.ts";
import { stopEnvironmentsOfAccount } from "./environment-stops.ts";

/**
 * Cuts an account off and stops what acts for it. Its access, its tokens and its
 * agent runs end in the one transaction; of many environments and executions the
 * rest is stopped by jobs/stops.ts. Whoever calls it has made sure that the
 * caller may.
 *
 * @returns the receipt; that of the first time when the account is blocked already
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
  const known = account.blocked_at === null ? undefined : await findBlockReceipt(tx.db, accountId);
  if (known) {
    await updateAccountBlock(tx, account, { blockedAt: account.blocked_at, organizationIds, reason });
    return known;
  }
  for (const { organizationId, userId } of memberships.filter(isAdministrator)) {
    requireOtherAdministrators(
      organizationId,
      await countOtherAdministrators(tx.db, { organizationId }, userId),
    );
  }
  const tokens = await disableTokensOfCreator(tx, accountId);
  // Before their environments, so that they are told to have ended for the block and not for the environment.
  const agentExecutionIds = await cutOffAgents(tx, accountId);
  const stopped = await stopEnvironmentsOfAccount(tx, accountId);
  const cutOff = await cutOffExecutor(tx, accountId);
  const touched = new Set([
    ...tokens.map(({ organization_id }) => organization_id),
    ...stopped.organizationIds,
    ...cutOff.organizationIds,
    ...agentExecutionIds.keys(),
  ]);
  const formerOrganizationIds = [...touched].filter((id) => !organizationIds.includes(id));
  await updateAccountBlock(tx, account, {
    blockedAt: tx.now,
    organizationIds,
    formerOrganizationIds,
    workflowIds: cutOff.workflowIds,
    agentExecutionIds,
    reason,
  });
  const receipt = create(BlockAccountResponseSchema, {
    environmentsStopped: stopped.count,
    subscriptionsCancelled: await cancelSubscriptions(tx, accountId),
    disabledServiceAccountTokens: tokens.map(serviceAccountTokenOfRow),
  });
  await insertBlockReceipt(tx, accountId, receipt);
  return receipt;
}

/**
 * Gives an account its access again, and nothing else of what blocking it cut
 * off. An account that is not blocked stays as it is.
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
 * Stops the agent runs of the account at once: no runner is waited for.
 *
 * @returns by organization, the runs that were stopped
 */
async function cutOffAgents(tx: WriteTransaction, accountId: string): Promise<Map<string, string[]>> {
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
 * Stops what runs as the account, in every organization. Its workflows start
 * nothing any more, of themselves: see executorOf.
 *
 * @returns where something was stopped, and by organization the workflows that have no fit executor now
 */
async function cutOffExecutor(
  tx: WriteTransaction,
  accountId: string,
): Promise<{ organizationIds: string[]; workflowIds: Map<string, string[]> }> {
  const organizationIds: string[] = [];
  const workflowIds = new Map<string, string[]>();
  for (const { userId, organizationId } of await findUsersOfAccount(tx.db, accountId)) {
    const scope = { organizationId };
    if ((await revokeExecutions(tx, scope, userId)) > 0) organizationIds.push(organizationId);
    const workflows = await findWorkflowsOfExecutor(tx.db, scope, userId);
    workflowIds.set(
      organizationId,
      workflows.map(({ id }) => id),
    );
  }
  return { organizationIds, workflowIds };
}
