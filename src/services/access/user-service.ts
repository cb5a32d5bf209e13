import { toJson } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { PersonalAccessTokenSchema } from "#gen/service/v1/user_pb.js";
import {
  type UserService as Contract,
  type CreatePersonalAccessTokenRequest,
  type DeletePersonalAccessTokenRequest,
  type GetAuthenticatedUserRequest,
  type GetUserRequest,
  type ListPersonalAccessTokensRequest,
  ListPersonalAccessTokensRequest_FilterSchema,
  type ListSessionsRequest,
  type RenewPersonalAccessTokenRequest,
  type RevokeSessionRequest,
  type SetSuspendedRequest,
} from "#gen/service/v1/user_service_pb.js";
import { notFound, ownAccount } from "../../domain/error.ts";
import { userMessage } from "../../domain/identity/member.ts";
import { renewedToken, requireOwnUserId, validForMs } from "../../domain/identity/personal-token.ts";
import { SESSION_IDLE_MS } from "../../domain/identity/session.ts";
import { findMemberFacts } from "../../store/identity/member-list.ts";
import {
  findOwnPersonalToken,
  findPersonalTokenPage,
  personalTokenOfRow,
} from "../../store/identity/personal-token.ts";
import { findOwnSession, findSessionPage } from "../../store/identity/session.ts";
import { removeToken } from "../../store/identity/token.ts";
import { updateTokenEnd } from "../../store/identity/token-end.ts";
import { toBody } from "../../store/json.ts";
import type { Scope } from "../../store/store.ts";
import { callerOf, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { listPage } from "../call/page.ts";
import { createPersonalToken } from "../identity/personal-token.ts";
import { liftSuspension, suspendMember } from "./member-suspension.ts";

/** Serves users: who they are, their suspension, and their own personal access tokens. */
export class UserService implements ServiceImpl<typeof Contract> {
  readonly #deps: ServiceDependencies;

  constructor(deps: ServiceDependencies) {
    this.#deps = deps;
  }

  async getAuthenticatedUser(_req: GetAuthenticatedUserRequest, ctx: HandlerContext) {
    const caller = callerOf(ctx);
    return { user: await this.#findUser(caller, caller.subject.id) };
  }

  async getUser({ userId }: GetUserRequest, ctx: HandlerContext) {
    return { user: await this.#findUser(callerOf(ctx), userId) };
  }

  async setSuspended({ userId, suspended }: SetSuspendedRequest, ctx: HandlerContext) {
    const { store, revocationMonitor } = this.#deps;
    const set = await writeAsCaller(store, ctx, async (tx, caller) => {
      if (userId === caller.subject.id) throw ownAccount("you can be suspended by others only");
      if (suspended) await suspendMember(tx, caller, userId);
      else await liftSuspension(tx, caller, userId);
      return {};
    });
    // The response promises that the member's streams have ended.
    await revocationMonitor.check();
    return set;
  }

  async #findUser(scope: Scope, userId: string) {
    const facts = await findMemberFacts(this.#deps.store.reader, scope, userId);
    if (!facts) throw notFound("user");
    return userMessage(scope.organizationId, facts);
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

  renewPersonalAccessToken(req: RenewPersonalAccessTokenRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const found = await findOwnPersonalToken(tx.db, caller, caller.subject.id, req.personalAccessTokenId);
      if (!found) throw notFound("personal access token");
      const { token, expiresAtMs } = renewedToken(
        personalTokenOfRow(found),
        { endsAtMs: found.expires_at, isDisabled: found.disabled_at !== null },
        validForMs(req.validFor),
        tx.now,
      );
      // The time of the last use is not stored with the token.
      const { lastUsed: _, ...stored } = token;
      const body = toBody(PersonalAccessTokenSchema, stored);
      await updateTokenEnd(tx, caller, found, { expiresAt: expiresAtMs, body });
      return { personalAccessToken: token };
    });
  }

  async listSessions(req: ListSessionsRequest, ctx: HandlerContext) {
    const caller = callerOf(ctx);
    const userId = caller.subject.id;
    const now = this.#deps.now();
    const { rows, page } = await listPage(this.#deps, caller, {
      operation: "ListSessions",
      parts: [userId],
      pagination: req.pagination,
      find: (db, after, limit) =>
        findSessionPage(db, caller, { userId, now, idleSince: now - SESSION_IDLE_MS }, after, limit),
    });
    return { ...page, sessions: rows.map((each) => ({ ...each, current: each.id === caller.tokenId })) };
  }

  async revokeSession({ sessionId }: RevokeSessionRequest, ctx: HandlerContext) {
    const { store, revocationMonitor } = this.#deps;
    const revoked = await writeAsCaller(store, ctx, async (tx, caller) => {
      const session = await findOwnSession(tx.db, caller, caller.subject.id, sessionId);
      if (!session) throw notFound("session");
      await removeToken(tx, caller, session);
      return {};
    });
    await revocationMonitor.check();
    return revoked;
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
