import { toJson } from "@bufbuild/protobuf";
import {
  type ListRunnersRequest,
  ListRunnersRequest_FilterSchema,
} from "#gen/service/v1/runner_service_pb.js";
import type { Caller } from "../../domain/identity/caller.ts";
import { findRunnerPage } from "../../store/runner/runner-list.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { listPage } from "../call/page.ts";

/** Returns one page of the runners of the caller's organization. */
export async function listRunners(deps: ServiceDependencies, caller: Caller, req: ListRunnersRequest) {
  const filter = { creatorIds: req.filter?.creatorIds ?? [], kinds: req.filter?.kinds ?? [] };
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListRunners",
    parts: [req.filter && toJson(ListRunnersRequest_FilterSchema, req.filter)],
    pagination: req.pagination,
    find: (db, after, limit) => findRunnerPage(db, caller, filter, after, limit),
  });
  return { ...page, runners: rows };
}
