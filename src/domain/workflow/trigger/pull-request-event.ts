import type { PullRequest } from "#gen/service/v1/agent_pb.js";
import type { WorkflowTrigger_PullRequestEvent } from "#gen/service/v1/workflow_pb.js";
import {
  giteaEventName,
  giteaEvents,
  giteaPullRequest,
  isGiteaPullRequestEvent,
} from "./gitea-pull-request.ts";
import { gitHubEvents, gitHubPullRequest } from "./github-pull-request.ts";
import { gitLabEvents, gitLabMergeRequest } from "./gitlab-merge-request.ts";
import { PayloadField, quoted, UnsupportedPayload } from "./payload-field.ts";
import { parseJsonBody } from "./webhook-body.ts";

/** A source-control host's message about one pull request. */
export interface PullRequestDelivery {
  /** Distinct events; at least one. */
  readonly events: readonly WorkflowTrigger_PullRequestEvent[];
  /** Complete: with id (its number in the repository), head_sha, and repository with clone_url. */
  readonly pullRequest: PullRequest;
  /** Every URL that the host gives for the repository that the changes are meant for. */
  readonly repositoryUrls: readonly string[];
}

/**
 * A delivery of pull-request events, or the reason why the body contains none or is not JSON: texts
 * safe to show.
 */
export type ParsedPullRequestDelivery =
  | { readonly delivery: PullRequestDelivery }
  | { readonly delivery?: undefined; readonly reason: string; readonly isMalformed: boolean };

/**
 * Parses the payload of a hook of GitHub, GitLab, Gitea or Forgejo. The payload is untrusted: a malformed field yields
 * a reason, and nothing throws.
 * @param headers by lower-case name
 * @param body the raw body, of a verified delivery
 */
export function parsePullRequestDelivery(
  headers: Readonly<Record<string, string | undefined>>,
  body: Uint8Array,
): ParsedPullRequestDelivery {
  try {
    return { delivery: parseDelivery(headers, body) };
  } catch (error) {
    if (!(error instanceof UnsupportedPayload)) throw error;
    return { reason: error.message, isMalformed: error instanceof MalformedBody };
  }
}

function parseDelivery(
  headers: Readonly<Record<string, string | undefined>>,
  body: Uint8Array,
): PullRequestDelivery {
  const giteaEvent = giteaEventName(headers);
  const gitHubEvent = headers["x-github-event"];
  const gitLabEvent = headers["x-gitlab-event"];
  if (giteaEvent !== undefined) {
    if (!isGiteaPullRequestEvent(giteaEvent)) throw otherEvent(giteaEvent);
    const payload = payloadOf(body);
    return { events: giteaEvents(giteaEvent, payload), ...giteaPullRequest(payload) };
  }
  if (gitHubEvent !== undefined) {
    if (gitHubEvent === "ping") throw new UnsupportedPayload("a ping: the hook is set up");
    if (gitHubEvent !== "pull_request" && gitHubEvent !== "pull_request_review") {
      throw otherEvent(gitHubEvent);
    }
    const payload = payloadOf(body);
    return { events: gitHubEvents(gitHubEvent, payload), ...gitHubPullRequest(payload) };
  }
  if (gitLabEvent !== undefined) {
    if (gitLabEvent !== "Merge Request Hook") throw otherEvent(gitLabEvent);
    const payload = payloadOf(body);
    return { events: gitLabEvents(payload), ...gitLabMergeRequest(payload) };
  }
  throw new UnsupportedPayload(
    "not the event of a pull request: it has none of the headers X-GitHub-Event, X-Gitlab-Event, X-Gitea-Event and X-Forgejo-Event",
  );
}

/** The error for a body that is not JSON. */
class MalformedBody extends UnsupportedPayload {}

function otherEvent(name: string): UnsupportedPayload {
  return new UnsupportedPayload(`the event ${quoted(name)} is not about a pull request`);
}

function payloadOf(body: Uint8Array): PayloadField {
  const document = parseJsonBody(body);
  if ("malformed" in document) throw new MalformedBody(document.malformed);
  return new PayloadField(document.value);
}
