import type { HandlerContext } from "@connectrpc/connect";
import type {
  CreateServiceAccountTrustRequest,
  DeleteServiceAccountTrustRequest,
  ListServiceAccountTrustsRequest,
} from "#gen/service/v1/service_account_service_pb.js";
import { notFound } from "../../../domain/error.ts";
import {
  newServiceAccountTrust,
  requireRoomForTrust,
} from "../../../domain/identity/machine/service-account-trust.ts";
import { findServiceAccount } from "../../../store/identity/service-account.ts";
import {
  findServiceAccountTrust,
  findServiceAccountTrustPage,
  findTrustsOf,
  insertServiceAccountTrust,
  removeServiceAccountTrust,
} from "../../../store/identity/service-account-trust.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { callerOf, writeAsCaller } from "../../call/call.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { listPage } from "../../call/page.ts";

/** Makes a service account trust an issuer. @throws DomainError NOT_FOUND, VALUE_UNUSABLE or PHASE_UNSUITABLE */
export function createServiceAccountTrust(
  { store, machineIssuers }: ServiceDependencies,
  req: CreateServiceAccountTrustRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const account = await findServiceAccount(tx.db, caller, req.serviceAccountId);
    if (!account) throw notFound("service account");
    requireRoomForTrust((await findTrustsOf(tx.db, account.id)).length);
    const serviceAccountTrust = newServiceAccountTrust(req, machineIssuers(), {
      id: tx.newId(),
      creator: caller.subject,
      now: tx.now,
    });
    await insertServiceAccountTrust(tx, caller, serviceAccountTrust, caller.accountId || null);
    return { serviceAccountTrust };
  });
}

/** Returns one page of the trusts of the caller's organization. */
export async function listServiceAccountTrusts(
  deps: ServiceDependencies,
  { serviceAccountId, pagination }: ListServiceAccountTrustsRequest,
  ctx: HandlerContext,
) {
  const caller = callerOf(ctx);
  if (serviceAccountId !== "" && !(await findServiceAccount(deps.store.reader, caller, serviceAccountId))) {
    throw notFound("service account");
  }
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListServiceAccountTrusts",
    parts: [serviceAccountId],
    pagination,
    find: (db, after, limit) =>
      findServiceAccountTrustPage(db, caller, serviceAccountId || undefined, after, limit),
  });
  return { ...page, serviceAccountTrusts: rows };
}

/** Deletes a trust and the tokens that were issued by it. @throws DomainError NOT_FOUND */
export function deleteServiceAccountTrust(
  { store }: ServiceDependencies,
  { serviceAccountTrustId }: DeleteServiceAccountTrustRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const trust = await findServiceAccountTrust(tx.db, caller, serviceAccountTrustId);
    if (!trust) throw notFound("service account trust");
    await removeServiceAccountTrust(tx, caller, trust);
    return {};
  });
}

/** Removes the trusts of a deleted service account, and the tokens that were issued by them. */
export async function removeTrustsOf(
  tx: WriteTransaction,
  scope: Scope,
  serviceAccountId: string,
): Promise<void> {
  for (const trust of await findTrustsOf(tx.db, serviceAccountId)) {
    if (trust.organization_id === scope.organizationId) await removeServiceAccountTrust(tx, scope, trust);
  }
}
