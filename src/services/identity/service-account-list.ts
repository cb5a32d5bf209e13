import { toJson } from "@bufbuild/protobuf";
import {
  type ListServiceAccountsRequest,
  ListServiceAccountsRequest_FilterSchema,
  type ListServiceAccountTokensRequest,
} from "#gen/service/v1/service_account_service_pb.js";
import { fold } from "../../domain/fold.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import type { Grant } from "../../domain/identity/permissions.ts";
import { pageSize, queryText } from "../../domain/page.ts";
import { findServiceAccountPage } from "../../store/identity/service-account.ts";
import {
  findServiceAccountTokenPage,
  type ServiceAccountTokenFilter,
} from "../../store/identity/service-account-token.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { onePage, readerFor } from "../call/page.ts";

/** One page of the service accounts of the caller's organization. */
export async function listServiceAccounts(
  deps: ServiceDependencies,
  caller: Caller,
  req: ListServiceAccountsRequest,
) {
  const query = queryText(
    "ListServiceAccounts",
    caller.organizationId,
    req.filter && toJson(ListServiceAccountsRequest_FilterSchema, req.filter),
  );
  const after = deps.pageTokens.read(query, req.pagination?.token ?? "");
  const size = pageSize(req.pagination);
  const filter = {
    includeSuspended: req.filter?.includeSuspended ?? false,
    ids: req.filter?.serviceAccountIds ?? [],
    search: fold(req.filter?.search ?? ""),
  };
  const found = await findServiceAccountPage(
    readerFor(deps, caller, filter.search),
    caller,
    filter,
    after,
    size + 1,
    deps.now(),
  );
  const { rows, pagination } = await onePage(deps, query, found, size);
  return { pagination, serviceAccounts: rows };
}

/** One page of the tokens of service accounts that the caller may see. */
export async function listServiceAccountTokens(
  deps: ServiceDependencies,
  caller: Caller,
  req: ListServiceAccountTokensRequest,
  grant: Grant,
) {
  const query = queryText("ListServiceAccountTokens", caller.organizationId, req.serviceAccountId);
  const after = deps.pageTokens.read(query, req.pagination?.token ?? "");
  const size = pageSize(req.pagination);
  const filter = visibleTokens(caller, grant, req.serviceAccountId);
  const found = await findServiceAccountTokenPage(readerFor(deps, caller), caller, filter, after, size + 1);
  const { rows, pagination } = await onePage(deps, query, found, size);
  return { pagination, tokens: rows };
}

function visibleTokens(caller: Caller, grant: Grant, asked: string): ServiceAccountTokenFilter {
  const serviceAccountId = asked || undefined;
  if (grant === "any") return { serviceAccountId };
  if (caller.role === "service_account") return { serviceAccountId: caller.subject.id };
  return { serviceAccountId, creatorAccountId: caller.accountId };
}
