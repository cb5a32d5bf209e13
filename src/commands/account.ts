import { create } from "@bufbuild/protobuf";
import { BlockAccountRequestSchema, type BlockAccountResponse } from "#gen/service/v1/account_service_pb.js";
import type { DataConfig } from "../config/config.ts";
import { DomainError } from "../domain/error.ts";
import { createCheck } from "../rpc/check.ts";
import { blockAccount, locksOfAccount, unblockAccount } from "../services/access/account-block.ts";
import type { StoredAccount } from "../store/identity/account.ts";
import { findAccount, findAccountByEmail } from "../store/identity/account.ts";
import { insertSubscription } from "../store/identity/subscription.ts";
import { OPERATOR, type Reader, type WriteTransaction } from "../store/store.ts";
import { openExistingData } from "./open-data.ts";
import { StartError } from "./start-error.ts";
import { argumentWords } from "./terminal/argument-words.ts";

/** The options of `account block`. The account is an id or an email address. */
export interface BlockOptions {
  readonly account: string;
  /** The reason, 1 to 1,024 characters as in the contract. */
  readonly reason: string;
}

/**
 * Blocks any account as the operator. A running server refuses the account from the next request on.
 *
 * @returns the receipt in lines for the person at the terminal
 * @throws StartError when there is no such account, it may not be blocked, or the contract does not allow the reason
 */
export async function blockAsOperator(
  config: DataConfig,
  { account, reason }: BlockOptions,
): Promise<string> {
  requireValidReason(reason);
  return asOperator(config, "chartroom account block", account, async (tx, { id }) =>
    receiptText(await blockAccount(tx, id, reason)),
  );
}

/**
 * Restores the access of a blocked account.
 *
 * @throws StartError when there is no such account
 */
export function unblockAsOperator(config: DataConfig, account: string): Promise<string> {
  return asOperator(config, "chartroom account unblock", account, async (tx, { id, email }) => {
    await unblockAccount(tx, id);
    return `${email} has access again\n`;
  });
}

export interface SubscriptionOptions {
  readonly account: string;
  readonly name: string;
}

/**
 * Adds a subscription to an account.
 *
 * @returns a line with its id
 * @throws StartError when there is no such account, or no name
 */
export async function addSubscription(
  config: DataConfig,
  { account, name }: SubscriptionOptions,
): Promise<string> {
  if (name.trim() === "") throw new StartError("a subscription needs a name");
  return asOperator(config, "chartroom subscription add", account, async (tx, { id: account_id }) => {
    const id = tx.newId();
    await insertSubscription(tx, { id, account_id, name });
    return `${id}\n`;
  });
}

/** Runs an action as the operator; an error that the operator can fix becomes a StartError. */
async function asOperator(
  config: DataConfig,
  operation: string,
  named: string,
  fn: (tx: WriteTransaction, account: StoredAccount) => Promise<string>,
): Promise<string> {
  const { store } = await openExistingData(config);
  try {
    return await store.write(OPERATOR, operation, async (tx) => fn(tx, await resolveAccount(tx.db, named)), {
      locks: async (db) => locksOfAccount((await resolveAccount(db, named)).id)(db),
    });
  } catch (error) {
    if (error instanceof DomainError) throw new StartError(error.message);
    throw error;
  } finally {
    await store.close();
  }
}

async function resolveAccount(db: Reader, named: string): Promise<StoredAccount> {
  const account = (await findAccount(db, named.toLowerCase())) ?? (await findAccountByEmail(db, named));
  if (!account) throw new StartError(`no account has the id or email ${named}`);
  return account;
}

/**
 * Checks a reason against the contract, the only place that defines its bounds. The rest of the request has valid
 * placeholders.
 */
function requireValidReason(reason: string): void {
  const accountId = "00000000-0000-0000-0000-000000000000";
  try {
    createCheck()(BlockAccountRequestSchema, create(BlockAccountRequestSchema, { accountId, reason }));
  } catch (error) {
    if (error instanceof DomainError) throw new StartError(argumentWords(error.message, "--reason"));
    throw error;
  }
}

function receiptText(receipt: BlockAccountResponse): string {
  const { environmentsStopped, subscriptionsCancelled, disabledServiceAccountTokens: tokens } = receipt;
  const lines = [
    `environments stopped: ${environmentsStopped}`,
    `subscriptions cancelled: ${subscriptionsCancelled}`,
    `service account tokens disabled: ${tokens.length}`,
    ...tokens.map(({ id, serviceAccountId, description }) =>
      `  ${id}  of service account ${serviceAccountId}  ${description}`.trimEnd(),
    ),
  ];
  return `${lines.join("\n")}\n`;
}
