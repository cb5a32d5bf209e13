import type { PullRequest_State as State } from "#gen/service/v1/agent_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import type { FollowedPullRequest } from "#gen/service/v1/pull_request_pb.js";
import { type ListedRow, type PagePosition, positionById } from "../../../domain/page.ts";
import { checkDeadline, unindexed } from "../../expressions.ts";
import { firstRows } from "../../first-rows.ts";
import { isSharedExecution } from "../../identity/shared-execution.ts";
import { bodyColumns, listedRows } from "../../listed-row.ts";
import { builderOf } from "../../query-builder.ts";
import type { Reader, Scope } from "../../store.ts";
import { pullRequestOfRow } from "./pull-request.ts";

/** The conditions of a list of pull requests: fields combine with AND, values in one with OR; empty means any. */
export interface PullRequestFilter {
  readonly executionIds: readonly string[];
  readonly actionIds: readonly string[];
  readonly environmentIds: readonly string[];
  readonly agentExecutionIds: readonly string[];
  readonly states: readonly State[];
  /**
   * Subject that sees, of those that belong to no workflow, its own and those of agent executions that are shared with
   * its groups; undefined for one that sees all.
   */
  readonly reader: (Pick<Subject, "id" | "principal"> & { readonly groupIds: readonly string[] }) | undefined;
}

/** Returns up to `limit` pull requests after `after`, the oldest first. */
export async function findPullRequestPage(
  db: Reader,
  scope: Scope,
  { executionIds, actionIds, environmentIds, agentExecutionIds, states, reader }: PullRequestFilter,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<FollowedPullRequest>[]> {
  const isOfFew = [executionIds, actionIds, environmentIds, agentExecutionIds].some((ids) => ids.length > 0);
  const own = builderOf(db)
    .selectFrom("pull_request")
    .select(["id", "seen_at", ...bodyColumns("pull_request")])
    .where(checkDeadline())
    // With the organization's index the engine would read all that was opened in the organization.
    .where(
      isOfFew ? unindexed<string>("pull_request.organization_id") : "organization_id",
      "=",
      scope.organizationId,
    );
  let query = own;
  if (executionIds.length > 0) query = query.where("execution_id", "in", executionIds);
  if (actionIds.length > 0) query = query.where("action_id", "in", actionIds);
  if (environmentIds.length > 0) query = query.where("environment_id", "in", environmentIds);
  if (agentExecutionIds.length > 0) query = query.where("agent_execution_id", "in", agentExecutionIds);
  if (reader) {
    const { id, principal, groupIds } = reader;
    query = query.where((eb) =>
      eb.or([
        eb("owner_id", "is", null),
        eb.and([eb("owner_id", "=", id), eb("owner_principal", "=", principal)]),
        ...(groupIds.length > 0 ? [isSharedExecution("pull_request.agent_execution_id", groupIds)] : []),
      ]),
    );
  }
  if (states.length > 0) query = query.where("state", "in", states);
  const order = { columns: ["pull_request.id"], direction: "asc", after: after && [after.id] } as const;
  const rows = await firstRows(own, query, order, limit);
  return listedRows(db, "pull_request", rows, positionById, pullRequestOfRow);
}
