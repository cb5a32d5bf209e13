import { toJson } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { Principal, type Subject } from "#gen/service/v1/identity_pb.js";
import {
  type ListHostAuthenticationTokensRequest,
  ListHostAuthenticationTokensRequest_FilterSchema,
} from "#gen/service/v1/runner_configuration_service_pb.js";
import { findHostTokenPage, type HostTokenFilter } from "../../store/runner/host-token-list.ts";
import { callerOf, grantOf } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { listPage } from "../call/page.ts";

/** One page of the host tokens that the caller may see. */
export async function listHostAuthenticationTokens(
  deps: ServiceDependencies,
  req: ListHostAuthenticationTokensRequest,
  ctx: HandlerContext,
) {
  const caller = callerOf(ctx);
  // Undefined for who sees the tokens of the whole organization.
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
