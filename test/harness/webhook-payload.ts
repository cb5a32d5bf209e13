import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Headers that name the kind of a payload. */
export const GITHUB_PULL_REQUEST = { "x-github-event": "pull_request" };
export const GITHUB_REVIEW = { "x-github-event": "pull_request_review" };
export const GITLAB_MERGE_REQUEST = { "x-gitlab-event": "Merge Request Hook" };
/** Gitea also sends the headers of GitHub. */
export const GITEA_PULL_REQUEST = {
  "x-gitea-event": "pull_request",
  "x-gitea-event-type": "pull_request",
  "x-github-event": "pull_request",
};

/** A payload as a host posts it: a file of test/data/webhooks with some values replaced. */
export type Payload = Record<string, unknown>;

export const openedPullRequest = (changes: Changes = {}) => payload("github-pull-request.json", changes);
export const approvingReview = (changes: Changes = {}) => payload("github-pull-request-review.json", changes);
export const openedMergeRequest = (changes: Changes = {}) =>
  payload("gitlab-merge-request-open.json", changes);
/** With new commits, ready for review and with a reviewer, all in one. */
export const updatedMergeRequest = (changes: Changes = {}) =>
  payload("gitlab-merge-request-update.json", changes);
export const openedGiteaPullRequest = (changes: Changes = {}) => payload("gitea-pull-request.json", changes);

/** Values by their path, such as "pull_request.head.sha"; undefined removes a member. */
export type Changes = Readonly<Record<string, unknown>>;

function payload(file: string, changes: Changes): Payload {
  const value: Payload = JSON.parse(
    readFileSync(join(import.meta.dirname, "../data/webhooks", file), "utf8"),
  );
  for (const [place, change] of Object.entries(changes)) {
    const names = place.split(".");
    const last = names.pop() ?? "";
    const holder = names.reduce((node, name) => node[name] as Payload, value);
    holder[last] = change;
  }
  return value;
}
