import type { ListPullRequestsRequest } from "#gen/service/v1/workflow_service_pb.js";
import type { Caller } from "../../../domain/identity/caller.ts";
import { mayReadEveryAgentExecution } from "../../../domain/policy/agent-policy.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import { findPullRequestPage } from "../../../store/workflow/pull-request/pull-request-list.ts";
import { type ListDependencies, listPage } from "../../call/page.ts";
import { findSharingGroups } from "../../policy/shared-role.ts";

/**
 * Returns one page of the pull requests of the caller's organization, oldest first. Pull requests opened from an
 * environment are visible to callers who may read every agent execution, to the creator of the environment, and to
 * the members of a group that the agent execution in it is shared with.
 */
export async function listPullRequests(
  deps: ListDependencies,
  caller: Caller,
  { filter, pagination }: ListPullRequestsRequest,
) {
  const policies = await findPolicies(deps.store.reader, caller);
  const criteria = {
    executionIds: filter?.workflowExecutionIds ?? [],
    actionIds: filter?.workflowExecutionActionIds ?? [],
    environmentIds: filter?.environmentIds ?? [],
    agentExecutionIds: filter?.agentExecutionIds ?? [],
    states: filter?.states ?? [],
    reader: mayReadEveryAgentExecution(policies, caller.role)
      ? undefined
      : { ...caller.subject, groupIds: await findSharingGroups(deps.store.reader, caller, policies) },
  };
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListPullRequests",
    parts: [{ ...criteria, reader: undefined }],
    pagination,
    find: (db, after, limit) => findPullRequestPage(db, caller, criteria, after, limit),
  });
  return { ...page, pullRequests: rows };
}
