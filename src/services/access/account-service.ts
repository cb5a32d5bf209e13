import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type {
  BlockAccountRequest,
  BlockAccountResponse,
  AccountService as Contract,
  GetAccountRequest,
  UnblockAccountRequest,
} from "#gen/service/v1/account_service_pb.js";
import {
  isAdministrator,
  requireAdministratorOfAccount,
  requireOtherAccount,
} from "../../domain/access/account-block.ts";
import { notFound } from "../../domain/error.ts";
import { accountMessage } from "../../domain/identity/account.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { findAccount, findMemberships } from "../../store/identity/account.ts";
import { findTokenIdsIn } from "../../store/identity/token-disabling.ts";
import type { WriteTransaction } from "../../store/store.ts";
import { callerOf, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { blockAccount, locksOfAccount, unblockAccount } from "./account-block.ts";
import { recordedAsMember } from "./recorded-member.ts";

/** Serves accounts: the logins of people, who may be members of several organizations. */
export class AccountService implements ServiceImpl<typeof Contract> {
  readonly #deps: ServiceDependencies;

  constructor(deps: ServiceDependencies) {
    this.#deps = deps;
  }

  async getAccount(_req: GetAccountRequest, ctx: HandlerContext) {
    const { accountId, organizationId } = callerOf(ctx);
    const db = this.#deps.store.reader;
    const account = await findAccount(db, accountId);
    if (!account) throw notFound("account");
    return { account: accountMessage(account, await findMemberships(db, accountId), organizationId) };
  }

  async blockAccount({ accountId, reason }: BlockAccountRequest, ctx: HandlerContext) {
    const { store, revocationMonitor } = this.#deps;
    const block = async (tx: WriteTransaction, caller: Caller) => {
      requireOtherAccount(caller, accountId);
      const recorded = await requireAdministratorOf(tx, caller, accountId);
      return visibleReceipt(tx, caller, await blockAccount(recorded, accountId, reason));
    };
    const receipt = await writeAsCaller(store, ctx, block, { alsoLocks: locksOfAccount(accountId) });
    // The response promises that the account's streams have ended.
    await revocationMonitor.check();
    return receipt;
  }

  unblockAccount({ accountId }: UnblockAccountRequest, ctx: HandlerContext) {
    const unblock = async (tx: WriteTransaction, caller: Caller) => {
      await unblockAccount(await requireAdministratorOf(tx, caller, accountId), accountId);
      return {};
    };
    return writeAsCaller(this.#deps.store, ctx, unblock, { alsoLocks: locksOfAccount(accountId) });
  }
}

/**
 * Requires that the caller administers an account. Returns the write that records changes in each organization under
 * the caller's user id there.
 */
async function requireAdministratorOf(
  tx: WriteTransaction,
  caller: Caller,
  accountId: string,
): Promise<WriteTransaction> {
  const own = await findMemberships(tx.db, caller.accountId);
  requireAdministratorOfAccount(caller, own, await findMemberships(tx.db, accountId));
  const userIds = new Map(own.map(({ organizationId, userId }) => [organizationId, userId]));
  return recordedAsMember(tx, caller, (organizationId) => userIds.get(organizationId));
}

/**
 * Returns the part of a receipt that the caller may see. Omits tokens of organizations that the caller does not
 * administer, and tokens that have been deleted since.
 */
async function visibleReceipt(
  tx: WriteTransaction,
  caller: Caller,
  receipt: BlockAccountResponse,
): Promise<BlockAccountResponse> {
  const administered = (await findMemberships(tx.db, caller.accountId)).filter(isAdministrator);
  const visibleIds = await findTokenIdsIn(
    tx.db,
    administered.map(({ organizationId }) => organizationId),
    receipt.disabledServiceAccountTokens.map(({ id }) => id),
  );
  const disabledServiceAccountTokens = receipt.disabledServiceAccountTokens.filter(({ id }) =>
    visibleIds.has(id),
  );
  return { ...receipt, disabledServiceAccountTokens };
}
