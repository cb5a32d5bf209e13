import { toJson } from "@bufbuild/protobuf";
import {
  type ListRunnersRequest,
  ListRunnersRequest_FilterSchema,
} from "#gen/service/v1/runner_service_pb.js";
import type { Caller } from "../../domain/identity/caller.ts";
import { pageSize, queryText } from "../../domain/page.ts";
import { findRunnerPage } from "../../store/runner/runner-list.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { onePage, readerFor } from "../call/page.ts";

/** One page of the runners of the caller's organization. */
export async function listRunners(deps: ServiceDependencies, caller: Caller, req: ListRunnersRequest) {
  const query = queryText(
    "ListRunners",
    caller.organizationId,
    req.filter && toJson(ListRunnersRequest_FilterSchema, req.filter),
  );
  const after = deps.pageTokens.read(query, req.pagination?.token ?? "");
  const size = pageSize(req.pagination);
  const filter = { creatorIds: req.filter?.creatorIds ?? [], kinds: req.filter?.kinds ?? [] };
  const found = await findRunnerPage(readerFor(deps, caller), caller, filter, after, size + 1);
  const { rows, pagination } = await onePage(deps, query, found, size);
  return { pagination, runners: rows };
}
