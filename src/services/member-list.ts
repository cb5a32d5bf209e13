import { toJson } from "@bufbuild/protobuf";
import {
  type ListMembersRequest,
  ListMembersRequest_FilterSchema,
  ListMembersRequest_SortSchema,
} from "#gen/service/v1/organization_service_pb.js";
import type { Caller } from "../domain/caller.ts";
import { isAskedFor, memberMessage, memberOrder } from "../domain/member.ts";
import { pageSize, queryText } from "../domain/page.ts";
import { findMembers } from "../store/member-list.ts";
import type { ServiceDependencies } from "./dependencies.ts";
import { answerCount, onePage } from "./page.ts";

/** One page of the members of the caller's organization, and on the first page their count when asked. */
export async function answerMembers(deps: ServiceDependencies, caller: Caller, req: ListMembersRequest) {
  const query = queryText(
    "ListMembers",
    caller.organizationId,
    req.filter && toJson(ListMembersRequest_FilterSchema, req.filter),
    req.sort && toJson(ListMembersRequest_SortSchema, req.sort),
  );
  const after = deps.pageTokens.read(query, req.pagination?.token ?? "");
  const size = pageSize(req.pagination);
  const order = memberOrder(req.sort);
  const everybody = await findMembers(deps.store.reader, caller);
  const matching = everybody.filter((member) => isAskedFor(member, req.filter)).sort(order);
  // The last of the page before may match no longer; its row is there all the same, and with it its place.
  const last = after && everybody.find(({ userId }) => userId === after.id);
  const found = (last ? matching.filter((member) => order(member, last) > 0) : matching)
    .slice(0, size + 1)
    .map((member) => ({ member, position: { key: 0, id: member.userId } }));
  const { rows, pagination } = onePage(deps.pageTokens, query, found, size);
  const count =
    req.count?.include && !after
      ? answerCount(Math.min(matching.length, deps.countLimit + 1), deps.countLimit)
      : undefined;
  return { pagination, members: rows.map(({ member }) => memberMessage(member)), ...(count && { count }) };
}
