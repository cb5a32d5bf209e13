import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { AccountService as Contract, GetAccountRequest } from "#gen/service/v1/account_service_pb.js";
import { accountMessage } from "../domain/account.ts";
import { notFound } from "../domain/error.ts";
import { findAccount, findMemberships } from "../store/account.ts";
import { callerOf } from "./call.ts";
import type { ServiceDependencies } from "./dependencies.ts";

/** What is built of the service; the router answers unimplemented for the rest. */
type Built = Pick<ServiceImpl<typeof Contract>, "getAccount">;

/** Accounts: people's logins, above the organizations that they are members of. */
export class AccountService implements Built {
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
}
