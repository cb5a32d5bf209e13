import type { ListPullRequestsRequest } from "#gen/service/v1/workflow_service_pb.js";
import type { Caller } from "../../../domain/identity/caller.ts";
import { findPullRequestPage } from "../../../store/workflow/pull-request/pull-request-list.ts";
import { type ListDependencies, listPage } from "../../call/page.ts";

/** Returns one page of the pull requests that actions of the caller's organization opened, oldest first. */
export async function listPullRequests(
  deps: ListDependencies,
  caller: Caller,
  { filter, pagination }: ListPullRequestsRequest,
) {
  const criteria = {
    executionIds: filter?.workflowExecutionIds ?? [],
    actionIds: filter?.workflowExecutionActionIds ?? [],
    environmentIds: filter?.environmentIds ?? [],
    states: filter?.states ?? [],
  };
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListPullRequests",
    parts: [criteria],
    pagination,
    find: (db, after, limit) => findPullRequestPage(db, caller, criteria, after, limit),
  });
  return { ...page, pullRequests: rows };
}
