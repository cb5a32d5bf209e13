import { toJson } from "@bufbuild/protobuf";
import {
  type ListEnvironmentClassesRequest,
  ListEnvironmentClassesRequest_FilterSchema,
} from "#gen/service/v1/runner_configuration_service_pb.js";
import type { Caller } from "../../domain/identity/caller.ts";
import type { Grant } from "../../domain/identity/permissions.ts";
import { kindsAcceptingEnvironments } from "../../domain/runner/environment-class.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import {
  type EnvironmentClassFilter,
  findEnvironmentClassPage,
} from "../../store/runner/environment-class-list.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { listPage } from "../call/page.ts";
import { runnersInScope } from "./runner-scope.ts";

/** One page of the environment classes of the caller's organization, for a runner of its own. */
export async function listEnvironmentClasses(
  deps: ServiceDependencies,
  caller: Caller,
  req: ListEnvironmentClassesRequest,
  grant: Grant,
) {
  const filter = await classFilter(deps, caller, req, grant);
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListEnvironmentClasses",
    parts: [req.filter && toJson(ListEnvironmentClassesRequest_FilterSchema, req.filter)],
    pagination: req.pagination,
    find: (db, after, limit) => findEnvironmentClassPage(db, caller, filter, after, limit),
  });
  return { ...page, environmentClasses: rows };
}

async function classFilter(
  deps: ServiceDependencies,
  caller: Caller,
  { filter }: ListEnvironmentClassesRequest,
  grant: Grant,
): Promise<EnvironmentClassFilter> {
  const asked = filter?.canCreateEnvironments;
  const policies = asked === undefined ? undefined : await findPolicies(deps.store.reader, caller);
  return {
    runnerIds: runnersInScope(caller, grant, filter?.runnerIds ?? []),
    runnerKinds: filter?.runnerKinds ?? [],
    enabled: filter?.enabled,
    taking: policies && {
      asked: asked === true,
      runnerKinds: kindsAcceptingEnvironments(policies, caller.role),
      local: policies.inForce.allowLocalRunners ?? true,
    },
  };
}
