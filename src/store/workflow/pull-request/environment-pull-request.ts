import { PullRequest_State as State } from "#gen/service/v1/agent_pb.js";
import type { FollowedPullRequest } from "#gen/service/v1/pull_request_pb.js";
import type { PullRequestPlace } from "../../../domain/workflow/pull-request/followed-pull-request.ts";
import { unindexed } from "../../expressions.ts";
import { prepared } from "../../prepared.ts";
import type { Reader, Scope } from "../../store.ts";
import { pullRequestOfRow } from "./pull-request.ts";
import type { PullRequestTable } from "./pull-request-schema.ts";

const selectOfEnvironment = prepared<
  { organizationId: string; environmentId: string; identity: string },
  PullRequestTable
>((db, { organizationId, environmentId, identity }) =>
  db
    .selectFrom("pull_request")
    .selectAll()
    .where("environment_id", "=", environmentId)
    .where(unindexed("pull_request.identity"), "=", identity)
    .where(unindexed("pull_request.organization_id"), "=", organizationId)
    .where(unindexed<string | null>("pull_request.action_id"), "is", null)
    .orderBy("id", "desc"),
);

/** Returns the open pull requests that people opened in an environment for a repository, the newest first. */
export async function findOpenPullRequestsOf(
  db: Reader,
  { organizationId }: Scope,
  environmentId: string,
  identity: string,
): Promise<FollowedPullRequest[]> {
  const rows = await selectOfEnvironment(db, { organizationId, environmentId, identity });
  return rows.filter(({ state }) => state === State.OPEN).map(pullRequestOfRow);
}

/** Returns the pull request with a number that was opened by a person in an environment; undefined for none. */
export async function findPullRequestAt(
  db: Reader,
  { organizationId }: Scope,
  environmentId: string,
  { identity, number }: Pick<PullRequestPlace, "identity" | "number">,
): Promise<FollowedPullRequest | undefined> {
  const rows = await selectOfEnvironment(db, { organizationId, environmentId, identity });
  const row = rows.find((each) => each.number === number);
  return row && pullRequestOfRow(row);
}
