import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { AgentExecutionFailureReason } from "#gen/service/v1/agent_pb.js";
import { Principal } from "#gen/service/v1/identity_pb.js";
import type {
  ServiceAccountService as Contract,
  CreateServiceAccountRequest,
  CreateServiceAccountTokenRequest,
  CreateServiceAccountTrustRequest,
  DeleteServiceAccountRequest,
  DeleteServiceAccountTokenRequest,
  DeleteServiceAccountTrustRequest,
  ListServiceAccountsRequest,
  ListServiceAccountTokensRequest,
  ListServiceAccountTrustsRequest,
} from "#gen/service/v1/service_account_service_pb.js";
import { notFound } from "../../domain/error.ts";
import { newServiceAccount } from "../../domain/identity/service-account.ts";
import { removeReviewDraftsOf } from "../../store/agent/agent-review-draft.ts";
import { removeMembershipsOf } from "../../store/identity/group-membership.ts";
import {
  findServiceAccount,
  insertServiceAccount,
  removeServiceAccount,
} from "../../store/identity/service-account.ts";
import {
  findServiceAccountToken,
  serviceAccountTokenOfRow,
} from "../../store/identity/service-account-token.ts";
import { findTokens, removeToken } from "../../store/identity/token.ts";
import { removeSecretsOf } from "../../store/policy/secret.ts";
import { haltAgentExecutions } from "../agent/halt-agent-execution.ts";
import { callerOf, grantOf, requireOwnership, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import {
  createServiceAccountTrust,
  deleteServiceAccountTrust,
  listServiceAccountTrusts,
  removeTrustsOf,
} from "../identity/machine/service-account-trusts.ts";
import { listServiceAccounts, listServiceAccountTokens } from "../identity/service-account-list.ts";
import { createServiceAccountToken } from "../identity/service-account-token.ts";
import { removeHostTokensOf } from "../runner/host-token.ts";
import { revokeExecutionsOfExecutor } from "../workflow/execution/execution-cancel.ts";

/** Serves service accounts, which are members of an organization without being people, and their tokens. */
export class ServiceAccountService implements ServiceImpl<typeof Contract> {
  readonly #deps: ServiceDependencies;

  constructor(deps: ServiceDependencies) {
    this.#deps = deps;
  }

  createServiceAccount(req: CreateServiceAccountRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const { serviceAccount, validUntilMs } = newServiceAccount(req, {
        id: tx.newId(),
        organizationId: caller.organizationId,
        creator: caller.subject,
        now: tx.now,
      });
      await insertServiceAccount(tx, caller, serviceAccount, validUntilMs, caller.accountId || null);
      return { serviceAccount };
    });
  }

  listServiceAccounts = (req: ListServiceAccountsRequest, ctx: HandlerContext) =>
    listServiceAccounts(this.#deps, callerOf(ctx), req);

  deleteServiceAccount({ serviceAccountId }: DeleteServiceAccountRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const row = await findServiceAccount(tx.db, caller, serviceAccountId);
      if (!row) throw notFound("service account");
      for (const token of await findTokens(tx.db, caller, "service_account", serviceAccountId)) {
        await removeToken(tx, caller, token);
      }
      await removeTrustsOf(tx, caller, serviceAccountId);
      await removeHostTokensOf(tx, caller, { id: serviceAccountId, principal: Principal.SERVICE_ACCOUNT });
      await removeSecretsOf(tx, caller, serviceAccountId);
      await removeReviewDraftsOf(tx, caller, serviceAccountId);
      await removeMembershipsOf(tx, caller, serviceAccountId);
      const failure = {
        reason: AgentExecutionFailureReason.SERVICE,
        message: "its service account was deleted",
      };
      await haltAgentExecutions(tx, caller, { creatorId: serviceAccountId }, { failure, immediate: true });
      await revokeExecutionsOfExecutor(tx, caller, serviceAccountId);
      await removeServiceAccount(tx, caller, row);
      return {};
    });
  }

  createServiceAccountToken(req: CreateServiceAccountTokenRequest, ctx: HandlerContext) {
    const { store, keys } = this.#deps;
    return writeAsCaller(store, ctx, (tx, caller) => createServiceAccountToken(tx, ctx, caller, keys, req));
  }

  async listServiceAccountTokens(req: ListServiceAccountTokensRequest, ctx: HandlerContext) {
    const caller = callerOf(ctx);
    const { serviceAccountId } = req;
    if (serviceAccountId !== "") {
      const row = await findServiceAccount(this.#deps.store.reader, caller, serviceAccountId);
      if (!row) throw notFound("service account");
      // For members the list is filtered instead.
      if (caller.role === "service_account") {
        requireOwnership(ctx, { id: serviceAccountId, principal: Principal.SERVICE_ACCOUNT });
      }
    }
    return listServiceAccountTokens(this.#deps, caller, req, grantOf(ctx));
  }

  deleteServiceAccountToken(
    { serviceAccountTokenId }: DeleteServiceAccountTokenRequest,
    ctx: HandlerContext,
  ) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const row = await findServiceAccountToken(tx.db, caller, serviceAccountTokenId);
      if (!row) throw notFound("service account token");
      const owner = { id: row.subject_id, principal: Principal.SERVICE_ACCOUNT };
      requireOwnership(ctx, serviceAccountTokenOfRow(row).creator, owner);
      await removeToken(tx, caller, row);
      return {};
    });
  }

  createServiceAccountTrust = (req: CreateServiceAccountTrustRequest, ctx: HandlerContext) =>
    createServiceAccountTrust(this.#deps, req, ctx);

  listServiceAccountTrusts = (req: ListServiceAccountTrustsRequest, ctx: HandlerContext) =>
    listServiceAccountTrusts(this.#deps, req, ctx);

  deleteServiceAccountTrust = (req: DeleteServiceAccountTrustRequest, ctx: HandlerContext) =>
    deleteServiceAccountTrust(this.#deps, req, ctx);
}
