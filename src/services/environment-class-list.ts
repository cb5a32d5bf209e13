import { toJson } from "@bufbuild/protobuf";
import {
  type ListEnvironmentClassesRequest,
  ListEnvironmentClassesRequest_FilterSchema,
} from "#gen/service/v1/runner_configuration_service_pb.js";
import type { Caller } from "../domain/caller.ts";
import { pageSize, queryText } from "../domain/page.ts";
import { type EnvironmentClassFilter, listEnvironmentClasses } from "../store/environment-class-list.ts";
import type { ServiceDependencies } from "./dependencies.ts";
import { onePage } from "./page.ts";

/** One page of the environment classes of the caller's organization. */
export async function answerEnvironmentClasses(
  deps: ServiceDependencies,
  caller: Caller,
  req: ListEnvironmentClassesRequest,
) {
  const query = queryText(
    "ListEnvironmentClasses",
    caller.organizationId,
    req.filter && toJson(ListEnvironmentClassesRequest_FilterSchema, req.filter),
  );
  const after = deps.pageTokens.read(query, req.pagination?.token ?? "");
  const size = pageSize(req.pagination);
  const found = await listEnvironmentClasses(deps.store.reader, caller, classFilter(req), after, size + 1);
  const { rows, pagination } = onePage(deps.pageTokens, query, found, size);
  return { pagination, environmentClasses: rows.map(({ environmentClass }) => environmentClass) };
}

function classFilter({ filter }: ListEnvironmentClassesRequest): EnvironmentClassFilter {
  return {
    runnerIds: filter?.runnerIds ?? [],
    runnerKinds: filter?.runnerKinds ?? [],
    // Every member can create environments in every enabled class.
    enabled: [filter?.enabled, filter?.canCreateEnvironments].filter((asked) => asked !== undefined),
  };
}
