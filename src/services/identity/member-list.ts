import { toJson } from "@bufbuild/protobuf";
import {
  type ListMembersRequest,
  ListMembersRequest_FilterSchema,
  ListMembersRequest_SortSchema,
} from "#gen/service/v1/organization_service_pb.js";
import { fold } from "../../domain/fold.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { memberMessage, memberOrder, statusesAskedFor } from "../../domain/identity/member.ts";
import { pageSize, queryText } from "../../domain/page.ts";
import { countMembers, findMemberPage } from "../../store/identity/member-list.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { onePage, readerFor, toCount } from "../call/page.ts";

/** One page of the members of the caller's organization, and on the first page their count when asked. */
export async function listMembers(deps: ServiceDependencies, caller: Caller, req: ListMembersRequest) {
  const { pageTokens, countLimit } = deps;
  const filter = {
    statuses: statusesAskedFor(req.filter),
    roles: req.filter?.roles ?? [],
    userIds: req.filter?.userIds ?? [],
    search: fold(req.filter?.search ?? ""),
  };
  const query = queryText(
    "ListMembers",
    caller.organizationId,
    req.filter && toJson(ListMembersRequest_FilterSchema, req.filter),
    req.sort && toJson(ListMembersRequest_SortSchema, req.sort),
  );
  const after = pageTokens.read(query, req.pagination?.token ?? "");
  const size = pageSize(req.pagination);
  const db = readerFor(deps, caller, filter.search);
  const found = await findMemberPage(db, caller, filter, memberOrder(req.sort), after, size + 1);
  const { rows, pagination } = await onePage(deps, query, found, size);
  const count =
    req.count?.include && !after
      ? toCount(await countMembers(db, caller, filter, countLimit + 1), countLimit)
      : undefined;
  return { pagination, members: rows.map(memberMessage), ...(count && { count }) };
}
