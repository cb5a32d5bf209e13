import { toJson } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { Principal, type Subject } from "#gen/service/v1/identity_pb.js";
import {
  type CreateHostAuthenticationTokenRequest,
  type ListHostAuthenticationTokensRequest,
  ListHostAuthenticationTokensRequest_FilterSchema,
  type UpdateHostAuthenticationTokenRequest,
} from "#gen/service/v1/runner_configuration_service_pb.js";
import { notFound } from "../../domain/error.ts";
import {
  type HostTokenSecrets,
  type HostTokenUpdate,
  hostTokenSubject,
  newHostToken,
  updatedHostToken,
} from "../../domain/runner/host-token.ts";
import { findMember } from "../../store/identity/member.ts";
import { findServiceAccount } from "../../store/identity/service-account.ts";
import {
  findHostToken,
  findHostTokenFor,
  findHostTokensOfSubject,
  insertHostToken,
  removeHostToken,
  updateHostToken,
} from "../../store/runner/host-token.ts";
import { findHostTokenPage, type HostTokenFilter } from "../../store/runner/host-token-list.ts";
import { findRunner } from "../../store/runner/runner.ts";
import type { Reader, Scope, WriteTransaction } from "../../store/store.ts";
import { callerOf, grantOf, requireOwnership, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { listPage } from "../call/page.ts";
import { openHostTokenSecrets, sealHostTokenSecrets } from "./host-token-secret.ts";

type Dependencies = Pick<ServiceDependencies, "store" | "keys">;

/** Stores a credential. It replaces an earlier one for the same runner, host and subject. */
export function createHostAuthenticationToken(
  { store, keys }: Dependencies,
  req: CreateHostAuthenticationTokenRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const subject = hostTokenSubject(req, caller.subject);
    requireOwnership(ctx, subject);
    if (!(await findRunner(tx.db, caller, req.runnerId))) throw notFound("runner");
    await checkSubject(tx.db, caller, subject);
    const token = newHostToken(req, subject, tx.newId(), tx.now);
    const replaced = await findHostTokenFor(tx.db, caller, { ...token, subject });
    if (replaced) await removeHostToken(tx, caller, replaced.token);
    const secrets = { token: req.token, ...(req.refreshToken && { refreshToken: req.refreshToken }) };
    await insertHostToken(tx, caller, { token, sealed: sealHostTokenSecrets(keys, token.id, secrets) });
    return { token };
  });
}

/** Returns a host token without its secrets. */
export async function getHostAuthenticationToken({ store }: Dependencies, id: string, ctx: HandlerContext) {
  const caller = callerOf(ctx);
  const found = await findHostToken(store.reader, caller, id);
  if (!found) throw notFound("host authentication token");
  requireOwnership(ctx, found.token.subject);
  return { token: found.token };
}

/** Updates a host token; omitted secrets do not change. */
export function updateHostAuthenticationToken(
  { store, keys }: Dependencies,
  req: UpdateHostAuthenticationTokenRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const before = await findHostToken(tx.db, caller, req.id);
    if (!before) throw notFound("host authentication token");
    requireOwnership(ctx, before.token.subject);
    const update = updatedHostToken(before.token, req, tx.now);
    if (!update) return {};
    const replaced = {
      token: update.newToken !== undefined,
      refreshToken: update.newRefreshToken !== undefined,
    };
    // Re-encrypts both, since a row has one key id for both.
    const sealed =
      replaced.token || replaced.refreshToken
        ? sealHostTokenSecrets(
            keys,
            req.id,
            updatedSecrets(openHostTokenSecrets(keys, req.id, before.sealed), update),
          )
        : undefined;
    await updateHostToken(tx, caller, before, update.token, sealed, replaced);
    return {};
  });
}

/** Deletes a host token. */
export function deleteHostAuthenticationToken({ store }: Dependencies, id: string, ctx: HandlerContext) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const found = await findHostToken(tx.db, caller, id);
    if (!found) throw notFound("host authentication token");
    requireOwnership(ctx, found.token.subject);
    await removeHostToken(tx, caller, found.token);
    return {};
  });
}

/** Removes the credentials of a subject that is being removed. */
export async function removeHostTokensOf(
  tx: WriteTransaction,
  scope: Scope,
  subject: Pick<Subject, "id" | "principal">,
): Promise<void> {
  for (const token of await findHostTokensOfSubject(tx.db, scope, subject)) {
    await removeHostToken(tx, scope, token);
  }
}

function updatedSecrets(
  before: HostTokenSecrets,
  { newToken, newRefreshToken }: HostTokenUpdate,
): HostTokenSecrets {
  const refreshToken = newRefreshToken ?? before.refreshToken;
  return { token: newToken ?? before.token, ...(refreshToken && { refreshToken }) };
}

/** @throws DomainError NOT_FOUND for a user or service account that is not in the organization */
async function checkSubject(db: Reader, scope: Scope, { id, principal }: Subject): Promise<void> {
  if (principal === Principal.SERVICE_ACCOUNT) {
    if (!(await findServiceAccount(db, scope, id))) throw notFound("service account");
  } else if (!(await findMember(db, scope, id))) {
    throw notFound("user");
  }
}

/** Returns one page of the host tokens that the caller may see. */
export async function listHostAuthenticationTokens(
  deps: ServiceDependencies,
  req: ListHostAuthenticationTokensRequest,
  ctx: HandlerContext,
) {
  const caller = callerOf(ctx);
  // Undefined for callers who may see all tokens of the organization.
  const owner = grantOf(ctx) === "any" ? undefined : caller.subject;
  const filter = hostTokenFilter(owner, req);
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListHostAuthenticationTokens",
    parts: [owner?.id, req.filter && toJson(ListHostAuthenticationTokensRequest_FilterSchema, req.filter)],
    pagination: req.pagination,
    find: (db, after, limit) => findHostTokenPage(db, caller, filter, after, limit),
  });
  return { ...page, tokens: rows };
}

function hostTokenFilter(
  owner: Subject | undefined,
  { filter }: ListHostAuthenticationTokensRequest,
): HostTokenFilter {
  return {
    ...(filter?.runnerId !== undefined && { runnerId: filter.runnerId }),
    subjects: [
      ...(owner ? [owner] : []),
      ...(filter?.userId === undefined ? [] : [{ id: filter.userId, principal: Principal.USER }]),
      ...(filter?.subjectId === undefined ? [] : [{ id: filter.subjectId }]),
    ],
  };
}
