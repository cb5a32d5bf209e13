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
import { momentMs, requireTimestampInRange } from "../../domain/timestamp-range.ts";
import {
  countEnvironments,
  type EnvironmentFilter,
  findEnvironmentPage,
} from "../../store/environment/environment-list.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { listPage } from "../call/page.ts";
import { withStoredText } from "../call/stored-text.ts";
import { runnersInScope } from "../runner/runner-scope.ts";

/** Returns one page of the caller's environments, and on the first page their count if requested. A runner gets its own only. */
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
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListEnvironments",
    parts: [
      req.filter && toJson(ListEnvironmentsRequest_FilterSchema, req.filter),
      [order.field, order.direction],
    ],
    pagination: req.pagination,
    search: filter.search,
    find: (db, after, limit) => findEnvironmentPage(db, caller, filter, order, after, limit),
    count: req.count?.include ? (db, limit) => countEnvironments(db, caller, filter, limit) : undefined,
  });
  return withStoredText(page, "environments", { schema: EnvironmentSchema, texts: rows });
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
