import type { PullRequest_State as State } from "#gen/service/v1/agent_pb.js";
import type { FollowedPullRequest } from "#gen/service/v1/pull_request_pb.js";
import { type ListedRow, type PagePosition, positionById } from "../../../domain/page.ts";
import { checkDeadline, unindexed } from "../../expressions.ts";
import { firstRows } from "../../first-rows.ts";
import { bodyColumns, listedRows } from "../../listed-row.ts";
import { builderOf } from "../../query-builder.ts";
import type { Reader, Scope } from "../../store.ts";
import { pullRequestOfRow } from "./pull-request.ts";

/** The conditions of a list of pull requests: fields combine with AND, values in one with OR; empty means any. */
export interface PullRequestFilter {
  readonly executionIds: readonly string[];
  readonly actionIds: readonly string[];
  readonly environmentIds: readonly string[];
  readonly states: readonly State[];
}

/** Returns up to `limit` pull requests after `after`, the oldest first. */
export async function findPullRequestPage(
  db: Reader,
  scope: Scope,
  { executionIds, actionIds, environmentIds, states }: PullRequestFilter,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<FollowedPullRequest>[]> {
  const isOfFew = executionIds.length + actionIds.length + environmentIds.length > 0;
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
  if (states.length > 0) query = query.where("state", "in", states);
  const order = { columns: ["pull_request.id"], direction: "asc", after: after && [after.id] } as const;
  const rows = await firstRows(own, query, order, limit);
  return listedRows(db, "pull_request", rows, positionById, pullRequestOfRow);
}
