import { toJson } from "@bufbuild/protobuf";
import {
  type ListMembersRequest,
  ListMembersRequest_FilterSchema,
  ListMembersRequest_SortSchema,
} from "#gen/service/v1/organization_service_pb.js";
import type { Caller } from "../../domain/identity/caller.ts";
import { memberMessage, memberOrder, requestedStatuses } from "../../domain/identity/member.ts";
import { fold } from "../../domain/text/fold.ts";
import { countMatchingMembers, findMemberPage } from "../../store/identity/member-list.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { listPage } from "../call/page.ts";

/** Returns one page of the members of the caller's organization, and on the first page their count if requested. */
export async function listMembers(deps: ServiceDependencies, caller: Caller, req: ListMembersRequest) {
  const filter = {
    statuses: requestedStatuses(req.filter),
    roles: req.filter?.roles ?? [],
    userIds: req.filter?.userIds ?? [],
    search: fold(req.filter?.search ?? ""),
  };
  const order = memberOrder(req.sort);
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListMembers",
    parts: [
      req.filter && toJson(ListMembersRequest_FilterSchema, req.filter),
      req.sort && toJson(ListMembersRequest_SortSchema, req.sort),
    ],
    pagination: req.pagination,
    search: filter.search,
    find: (db, after, limit) => findMemberPage(db, caller, filter, order, after, limit),
    count: req.count?.include ? (db, limit) => countMatchingMembers(db, caller, filter, limit) : undefined,
  });
  return { ...page, members: rows.map(memberMessage) };
}
