import { toJson } from "@bufbuild/protobuf";
import { EnvironmentSchema } from "#gen/service/v1/environment_pb.js";
import {
  type ListEnvironmentsRequest,
  ListEnvironmentsRequest_FilterSchema,
} from "#gen/service/v1/environment_service_pb.js";
import { environmentOrder } from "../../domain/environment/environment-order.ts";
import { fold } from "../../domain/fold.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import type { Grant } from "../../domain/identity/permissions.ts";
import { pageSize, queryText } from "../../domain/page.ts";
import { momentMs, requireTimestampInRange } from "../../domain/timestamp-range.ts";
import {
  countEnvironments,
  type EnvironmentFilter,
  findEnvironmentPage,
} from "../../store/environment/environment-list.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { onePage, readerFor, toCount } from "../call/page.ts";
import { withStoredText } from "../call/stored-text.ts";
import { runnersInScope } from "../runner/runner-scope.ts";

/** One page of the caller's environments, for a runner of those that are on it, and on the first page their count when asked. */
export async function listEnvironments(
  deps: ServiceDependencies,
  caller: Caller,
  req: ListEnvironmentsRequest,
  grant: Grant,
) {
  requireTimestampInRange("filter.createdBefore", req.filter?.createdBefore);
  const asked = environmentFilter(req);
  const filter = { ...asked, runnerIds: runnersInScope(caller, grant, asked.runnerIds) };
  const order = environmentOrder(req.sort);
  const query = queryText(
    "ListEnvironments",
    caller.organizationId,
    req.filter && toJson(ListEnvironmentsRequest_FilterSchema, req.filter),
    [order.field, order.direction],
  );
  const after = deps.pageTokens.read(query, req.pagination?.token ?? "");
  const size = pageSize(req.pagination);
  const db = readerFor(deps, caller, filter.search);
  const found = await findEnvironmentPage(db, caller, filter, order, after, size + 1);
  const { rows, pagination } = await onePage(deps, query, found, size);
  const count =
    req.count?.include && !after
      ? toCount(await countEnvironments(db, caller, filter, deps.countLimit + 1), deps.countLimit)
      : undefined;
  return withStoredText({ pagination, ...(count && { count }) }, "environments", {
    schema: EnvironmentSchema,
    texts: rows,
  });
}

function environmentFilter({ filter }: ListEnvironmentsRequest): EnvironmentFilter {
  const before = filter?.createdBefore;
  return {
    runnerIds: filter?.runnerIds ?? [],
    phases: filter?.statusPhases ?? [],
    creatorIds: filter?.creatorIds ?? [],
    projectIds: filter?.projectIds ?? [],
    runnerKinds: filter?.runnerKinds ?? [],
    createdBefore: before && momentMs(before),
    search: fold(filter?.search ?? ""),
    sessionIds: filter?.sessionIds ?? [],
  };
}
