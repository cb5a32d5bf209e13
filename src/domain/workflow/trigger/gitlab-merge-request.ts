import { PullRequest_State as State } from "#gen/service/v1/agent_pb.js";
import { WorkflowTrigger_PullRequestEvent as Event } from "#gen/service/v1/workflow_pb.js";
import { type PayloadField, quoted, UnsupportedPayload } from "./payload-field.ts";
import { pullRequestFromPayload, type RepositoryPullRequest } from "./payload-pull-request.ts";

/** Events by `action`; `open` and `update` depend on more. */
const EVENTS: ReadonlyMap<string, Event> = new Map([
  ["reopen", Event.OPENED],
  ["close", Event.CLOSED],
  ["merge", Event.MERGED],
  // The approval that completes the required number, and an earlier one.
  ["approved", Event.APPROVED],
  ["approval", Event.APPROVED],
]);

/** A merge request is locked while it is being merged, and open if the merge fails. */
const STATES: ReadonlyMap<string, State> = new Map([
  ["opened", State.OPEN],
  ["locked", State.OPEN],
  ["closed", State.CLOSED],
  ["merged", State.MERGED],
]);

/**
 * Returns the events in GitLab's `Merge Request Hook`. One update may contain several: new commits,
 * the end of the draft, another reviewer; and a merge request may be opened with reviewers.
 * @throws UnsupportedPayload for any other action, and an update of something else
 */
export function gitLabEvents(payload: PayloadField): Event[] {
  const mergeRequest = payload.at("object_attributes");
  const action = mergeRequest.at("action").name(64);
  if (action === "open") {
    return payload.at("reviewers").list().length === 0
      ? [Event.OPENED]
      : [Event.OPENED, Event.REVIEW_REQUESTED];
  }
  if (action === "update") {
    const events: Event[] = [];
    if (hasNewCommits(mergeRequest)) events.push(Event.UPDATED);
    if (leftDraft(payload.at("changes", "draft"))) events.push(Event.READY_FOR_REVIEW);
    if (requestsReview(payload.at("changes", "reviewers"))) events.push(Event.REVIEW_REQUESTED);
    if (events.length === 0) {
      throw new UnsupportedPayload("the update brings no commits, no reviewer and no end of the draft");
    }
    return events;
  }
  const event = EVENTS.get(action);
  if (event === undefined) throw new UnsupportedPayload(`the action ${quoted(action)} starts nothing`);
  return [event];
}

/**
 * Returns the pull request of a payload.
 * @throws UnsupportedPayload when a field is missing or malformed
 */
export function gitLabMergeRequest(payload: PayloadField): RepositoryPullRequest {
  const mergeRequest = payload.at("object_attributes");
  const project = payload.at("project");
  const state = STATES.get(mergeRequest.at("state").name(64));
  if (state === undefined) {
    throw new UnsupportedPayload("object_attributes.state must be opened, locked, closed or merged");
  }
  return pullRequestFromPayload({
    id: mergeRequest.at("iid"),
    title: mergeRequest.at("title"),
    fromBranch: mergeRequest.at("source_branch"),
    toBranch: mergeRequest.at("target_branch"),
    url: mergeRequest.at("url"),
    author: authorOf(payload),
    draft: mergeRequest.at("draft").flag() || mergeRequest.at("work_in_progress").flag(),
    state,
    headSha: mergeRequest.at("last_commit", "id"),
    headRepositoryId: () => mergeRequest.at("source_project_id"),
    baseRepositoryId: () => mergeRequest.at("target_project_id"),
    repositoryPath: project.at("path_with_namespace"),
    cloneUrl: project.at("git_http_url"),
    otherUrls: [project.at("web_url"), project.at("git_ssh_url")],
  });
}

function hasNewCommits(mergeRequest: PayloadField): boolean {
  const before = mergeRequest.at("oldrev").optional()?.commit();
  return before !== undefined && before !== mergeRequest.at("last_commit", "id").commit();
}

function leftDraft(change: PayloadField): boolean {
  return change.at("previous").flag() && !change.at("current").flag();
}

/**
 * Returns whether the change requests a review. A repeated request to the same reviewer is flagged,
 * not added.
 */
function requestsReview(change: PayloadField): boolean {
  const before = new Set(
    change
      .at("previous")
      .list()
      .map((reviewer) => reviewer.at("id").id()),
  );
  return change
    .at("current")
    .list()
    .some((reviewer) => !before.has(reviewer.at("id").id()) || reviewer.at("re_requested").flag());
}

/**
 * Returns the author, whom GitLab names only by number; the login name comes from the people in the
 * payload with that number.
 */
function authorOf(payload: PayloadField): PayloadField | undefined {
  const authorId = payload.at("object_attributes", "author_id").optional()?.id();
  const people = [payload.at("user"), ...payload.at("assignees").list(), ...payload.at("reviewers").list()];
  const author = people.find((person) => {
    const id = person.at("id").optional()?.id();
    return id !== undefined && id === authorId;
  });
  return author?.at("username");
}
