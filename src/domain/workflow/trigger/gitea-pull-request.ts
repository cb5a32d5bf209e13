import { PullRequest_State as State } from "#gen/service/v1/agent_pb.js";
import { WorkflowTrigger_PullRequestEvent as Event } from "#gen/service/v1/workflow_pb.js";
import { gitHubPullRequest } from "./github-pull-request.ts";
import { type PayloadField, quoted, UnsupportedPayload } from "./payload-field.ts";
import type { RepositoryPullRequest } from "./payload-pull-request.ts";

/** Events by `action` of the event `pull_request`; `closed` and `edited` depend on more. */
const EVENTS: ReadonlyMap<string, Event> = new Map([
  ["opened", Event.OPENED],
  ["reopened", Event.OPENED],
  ["synchronized", Event.UPDATED],
  ["review_requested", Event.REVIEW_REQUESTED],
]);

/** The beginnings of a draft's title; the host has no other mark for a draft. */
const DRAFT_TITLE = /^(?:wip:|\[wip\])/i;

/** The headers that name the event, the more specific name last: some events have only that one. */
const EVENT_HEADERS = ["x-gitea-event", "x-forgejo-event", "x-gitea-event-type", "x-forgejo-event-type"];

/**
 * Returns the event that the headers of Gitea or Forgejo name; undefined for another host. Both
 * also send the headers of GitHub, so these are read first.
 * @param headers by lower-case name
 */
export function giteaEventName(headers: Readonly<Record<string, string | undefined>>): string | undefined {
  const names = EVENT_HEADERS.flatMap((header) => headers[header] ?? []);
  return names.find((name) => name !== "") ?? names[0];
}

/**
 * Returns the events in `pull_request` or an approval of Gitea and Forgejo.
 * @throws UnsupportedPayload for any other event or action
 */
export function giteaEvents(name: string, payload: PayloadField): Event[] {
  if (name === "pull_request_approved" || name === "pull_request_review_approved") return [Event.APPROVED];
  const action = payload.at("action").name(64);
  const pullRequest = payload.at("pull_request");
  if (action === "closed") return [pullRequest.at("merged").flag() ? Event.MERGED : Event.CLOSED];
  if (action === "edited" && leftDraft(payload)) return [Event.READY_FOR_REVIEW];
  const event = EVENTS.get(action);
  if (event === undefined) throw new UnsupportedPayload(`the action ${quoted(action)} starts nothing`);
  return [event];
}

/** Returns whether {@link giteaEvents} reads the event. */
export function isGiteaPullRequestEvent(name: string): boolean {
  return /^pull_request(?:_sync|_review_request|_approved|_review_approved)?$/.test(name);
}

/**
 * Returns the pull request of a payload, which has the form of GitHub's.
 * @throws UnsupportedPayload when a field is missing or malformed
 */
export function giteaPullRequest(payload: PayloadField): RepositoryPullRequest {
  const read = gitHubPullRequest(payload);
  const { pullRequest } = read;
  if (pullRequest.state === State.OPEN && DRAFT_TITLE.test(pullRequest.title)) pullRequest.draft = true;
  return read;
}

/** Returns whether the title lost the mark of a draft. */
function leftDraft(payload: PayloadField): boolean {
  const before = payload.at("changes", "title", "from").optional()?.title(500) ?? "";
  return DRAFT_TITLE.test(before) && !DRAFT_TITLE.test(payload.at("pull_request", "title").title(500));
}
