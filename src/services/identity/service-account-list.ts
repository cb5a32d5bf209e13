import { toJson } from "@bufbuild/protobuf";
import {
  type ListServiceAccountsRequest,
  ListServiceAccountsRequest_FilterSchema,
  type ListServiceAccountTokensRequest,
} from "#gen/service/v1/service_account_service_pb.js";
import type { Caller } from "../../domain/identity/caller.ts";
import type { Grant } from "../../domain/identity/permissions.ts";
import { fold } from "../../domain/text/fold.ts";
import { findServiceAccountPage } from "../../store/identity/service-account.ts";
import {
  findServiceAccountTokenPage,
  type ServiceAccountTokenFilter,
} from "../../store/identity/service-account-token.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { listPage } from "../call/page.ts";

/** Returns one page of the service accounts of the caller's organization. */
export async function listServiceAccounts(
  deps: ServiceDependencies,
  caller: Caller,
  req: ListServiceAccountsRequest,
) {
  const filter = {
    includeSuspended: req.filter?.includeSuspended ?? false,
    ids: req.filter?.serviceAccountIds ?? [],
    search: fold(req.filter?.search ?? ""),
  };
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListServiceAccounts",
    parts: [req.filter && toJson(ListServiceAccountsRequest_FilterSchema, req.filter)],
    pagination: req.pagination,
    search: filter.search,
    find: (db, after, limit) => findServiceAccountPage(db, caller, filter, after, limit, deps.now()),
  });
  return { ...page, serviceAccounts: rows };
}

/** Returns one page of the tokens of service accounts that the caller may see. */
export async function listServiceAccountTokens(
  deps: ServiceDependencies,
  caller: Caller,
  req: ListServiceAccountTokensRequest,
  grant: Grant,
) {
  const filter = visibleTokens(caller, grant, req.serviceAccountId);
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListServiceAccountTokens",
    parts: [req.serviceAccountId],
    pagination: req.pagination,
    find: (db, after, limit) => findServiceAccountTokenPage(db, caller, filter, after, limit),
  });
  return { ...page, tokens: rows };
}

function visibleTokens(caller: Caller, grant: Grant, asked: string): ServiceAccountTokenFilter {
  const serviceAccountId = asked || undefined;
  if (grant === "any") return { serviceAccountId };
  if (caller.role === "service_account") return { serviceAccountId: caller.subject.id };
  return { serviceAccountId, creatorAccountId: caller.accountId };
}
