import { create } from "@bufbuild/protobuf";
import { type BlockAccountResponse, BlockAccountResponseSchema } from "#gen/service/v1/account_service_pb.js";
import { ACTIVE_PHASES, isAdministrator, stopsWithItsCreator } from "../domain/account-block.ts";
import { stoppedEnvironment } from "../domain/environment.ts";
import { lastAdministrator, notFound } from "../domain/error.ts";
import { findAccount, findMemberships } from "../store/account.ts";
import { findUsersOfAccount, updateAccountBlock } from "../store/account-block.ts";
import { findBlockReceipt, insertBlockReceipt, removeBlockReceipt } from "../store/block-receipt.ts";
import { findEnvironmentsOfCreator, updateEnvironment } from "../store/environment.ts";
import { countOtherAdministrators } from "../store/member.ts";
import { serviceAccountTokenOfRow } from "../store/service-account-token.ts";
import type { WriteTransaction } from "../store/store.ts";
import { cancelSubscriptions } from "../store/subscription.ts";
import { disableTokensOfCreator } from "../store/token-disabling.ts";

/**
 * Cuts an account off and stops what acts for it, all in the one transaction.
 * Whoever calls it has made sure that the caller may.
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
    const others = await countOtherAdministrators(tx.db, { organizationId }, userId);
    if (others === 0) throw lastAdministrator(organizationId);
  }
  const tokens = await disableTokensOfCreator(tx, accountId);
  const stopped = await stopEnvironments(tx, accountId);
  const touched = new Set([...tokens.map(({ organization_id }) => organization_id), ...stopped]);
  const formerOrganizationIds = [...touched].filter((id) => !organizationIds.includes(id));
  await updateAccountBlock(tx, account, {
    blockedAt: tx.now,
    organizationIds,
    formerOrganizationIds,
    reason,
  });
  const receipt = create(BlockAccountResponseSchema, {
    environmentsStopped: stopped.length,
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
 * Those that were already told to stop and still run are among them, too.
 *
 * @returns the organization of each
 */
async function stopEnvironments(tx: WriteTransaction, accountId: string): Promise<string[]> {
  const stopped: string[] = [];
  for (const { userId, organizationId } of await findUsersOfAccount(tx.db, accountId)) {
    const scope = { organizationId };
    const active = await findEnvironmentsOfCreator(tx.db, scope, userId, ACTIVE_PHASES);
    for (const before of active.filter(stopsWithItsCreator)) {
      const after = stoppedEnvironment(before);
      if (after) await updateEnvironment(tx, scope, before, after);
      stopped.push(organizationId);
    }
  }
  return stopped;
}
