import type { ListPullRequestsRequest } from "#gen/service/v1/workflow_service_pb.js";
import type { Caller } from "../../../domain/identity/caller.ts";
import { mayReadEveryAgentExecution } from "../../../domain/policy/agent-policy.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import { findPullRequestPage } from "../../../store/workflow/pull-request/pull-request-list.ts";
import { type ListDependencies, listPage } from "../../call/page.ts";

/**
 * Returns one page of the pull requests of the caller's organization, oldest first. Those of environments are seen by
 * who may read every agent execution, and by the creator of the environment.
 */
export async function listPullRequests(
  deps: ListDependencies,
  caller: Caller,
  { filter, pagination }: ListPullRequestsRequest,
) {
  const criteria = {
    executionIds: filter?.workflowExecutionIds ?? [],
    actionIds: filter?.workflowExecutionActionIds ?? [],
    environmentIds: filter?.environmentIds ?? [],
    agentExecutionIds: filter?.agentExecutionIds ?? [],
    states: filter?.states ?? [],
    reader: mayReadEveryAgentExecution(await findPolicies(deps.store.reader, caller), caller.role)
      ? undefined
      : caller.subject,
  };
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListPullRequests",
    parts: [{ ...criteria, reader: undefined }],
    pagination,
    find: (db, after, limit) => findPullRequestPage(db, caller, criteria, after, limit),
  });
  return { ...page, pullRequests: rows };
}
