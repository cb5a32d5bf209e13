import { PullRequest_State as State } from "#gen/service/v1/agent_pb.js";
import { WorkflowTrigger_PullRequestEvent as Event } from "#gen/service/v1/workflow_pb.js";
import { type PayloadField, quoted, UnsupportedPayload } from "./payload-field.ts";
import { pullRequestFromPayload, type RepositoryPullRequest } from "./payload-pull-request.ts";

/** Events by `action` of the event `pull_request`; `closed` depends on more. */
const EVENTS: ReadonlyMap<string, Event> = new Map([
  ["opened", Event.OPENED],
  ["reopened", Event.OPENED],
  ["synchronize", Event.UPDATED],
  ["ready_for_review", Event.READY_FOR_REVIEW],
  ["review_requested", Event.REVIEW_REQUESTED],
]);

/**
 * Returns the events in GitHub's `pull_request` or `pull_request_review`.
 * @throws UnsupportedPayload for any other action
 */
export function gitHubEvents(name: "pull_request" | "pull_request_review", payload: PayloadField): Event[] {
  const action = payload.at("action").name(64);
  if (name === "pull_request_review") {
    if (action !== "submitted") throw otherAction(`review ${action}`);
    const verdict = payload.at("review", "state").name(64).toLowerCase();
    if (verdict !== "approved") throw otherAction(`review ${verdict}`);
    return [Event.APPROVED];
  }
  if (action === "closed") {
    return [stateOf(payload.at("pull_request")) === State.MERGED ? Event.MERGED : Event.CLOSED];
  }
  const event = EVENTS.get(action);
  if (event === undefined) throw otherAction(action);
  return [event];
}

/**
 * Returns the pull request of a payload.
 * @throws UnsupportedPayload when a field is missing or malformed
 */
export function gitHubPullRequest(payload: PayloadField): RepositoryPullRequest {
  const pullRequest = payload.at("pull_request");
  const repository = payload.at("repository");
  return pullRequestFromPayload({
    id: pullRequest.at("number"),
    title: pullRequest.at("title"),
    fromBranch: pullRequest.at("head", "ref"),
    toBranch: pullRequest.at("base", "ref"),
    url: pullRequest.at("html_url"),
    // GitHub sends null for a deleted account.
    author: pullRequest.at("user").optional()?.at("login"),
    draft: pullRequest.at("draft").flag(),
    state: stateOf(pullRequest),
    headSha: pullRequest.at("head", "sha"),
    // GitHub sends null for a fork that was deleted.
    headRepositoryId: () => pullRequest.at("head", "repo", "id"),
    baseRepositoryId: () => repository.at("id"),
    repositoryPath: repository.at("full_name"),
    cloneUrl: repository.at("clone_url"),
    otherUrls: [repository.at("html_url"), repository.at("ssh_url"), repository.at("git_url")],
  });
}

/** Returns the state. A review's pull request has no `merged`, only its time. */
function stateOf(pullRequest: PayloadField): State {
  if (pullRequest.at("merged").flag() || pullRequest.at("merged_at").optional()?.name(64)) {
    return State.MERGED;
  }
  const state = pullRequest.at("state").name(64);
  if (state === "open") return State.OPEN;
  if (state === "closed") return State.CLOSED;
  throw new UnsupportedPayload("pull_request.state must be open or closed");
}

function otherAction(action: string): UnsupportedPayload {
  return new UnsupportedPayload(`the action ${quoted(action)} starts nothing`);
}
