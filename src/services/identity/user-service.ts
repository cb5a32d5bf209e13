import { toJson } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type UserService as Contract,
  type CreatePersonalAccessTokenRequest,
  type DeletePersonalAccessTokenRequest,
  type ListPersonalAccessTokensRequest,
  ListPersonalAccessTokensRequest_FilterSchema,
} from "#gen/service/v1/user_service_pb.js";
import { notFound } from "../../domain/error.ts";
import { requireOwnUserId, validForMs } from "../../domain/identity/personal-token.ts";
import { findOwnPersonalToken, findPersonalTokenPage } from "../../store/identity/personal-token.ts";
import { removeToken } from "../../store/identity/token.ts";
import { callerOf, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { listPage } from "../call/page.ts";
import { createPersonalToken } from "./personal-token.ts";

/** The service of users: their own personal access tokens. */
export class UserService implements ServiceImpl<typeof Contract> {
  readonly #deps: ServiceDependencies;

  constructor(deps: ServiceDependencies) {
    this.#deps = deps;
  }

  createPersonalAccessToken(req: CreatePersonalAccessTokenRequest, ctx: HandlerContext) {
    const { store, keys } = this.#deps;
    return writeAsCaller(store, ctx, async (tx, caller) => ({
      token: await createPersonalToken(tx, caller, keys, {
        userId: requireOwnUserId(req.userId, caller.subject.id),
        description: req.description,
        validForMs: validForMs(req.validFor),
        readOnly: req.readOnly,
        creator: caller.subject,
        creatorAccountId: caller.accountId,
      }),
    }));
  }

  async listPersonalAccessTokens(req: ListPersonalAccessTokensRequest, ctx: HandlerContext) {
    const caller = callerOf(ctx);
    const userId = caller.subject.id;
    const userIds = req.filter?.userIds ?? [];
    const { rows, page } = await listPage(this.#deps, caller, {
      operation: "ListPersonalAccessTokens",
      parts: [userId, req.filter && toJson(ListPersonalAccessTokensRequest_FilterSchema, req.filter)],
      pagination: req.pagination,
      find: async (db, after, limit) =>
        userIds.length === 0 || userIds.includes(userId)
          ? findPersonalTokenPage(db, caller, userId, after, limit)
          : [],
    });
    return { ...page, personalAccessTokens: rows };
  }

  deletePersonalAccessToken(req: DeletePersonalAccessTokenRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const token = await findOwnPersonalToken(tx.db, caller, caller.subject.id, req.personalAccessTokenId);
      if (!token) throw notFound("personal access token");
      await removeToken(tx, caller, token);
      return {};
    });
  }
}
