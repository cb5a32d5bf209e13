import type { Environment, EnvironmentInitializer } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { DomainError, limitReached, valueUnusable } from "../error.ts";
import { isWithheld } from "../policy/work-secrets.ts";
import { sourceOfPage } from "../source/context-url.ts";
import { branchNameProblem } from "../source/git-branch-name.ts";
import { repositoryIdentity } from "../source/repository-identity.ts";
import { requireNoDeceptiveText } from "../text/deceptive-text.ts";

/** The source of the default names of a push: an agent run, or else the environment. */
export interface PushOrigin {
  readonly id: string;
  readonly name: string;
  /** The text of the first message; empty for none. */
  readonly firstMessage: string;
}

/** Maximum number of characters of a title that become part of a branch name. */
const MAX_SLUG_CHARACTERS = 40;
/** Number of digits at the end of an id that a branch name contains: the end of a UUID v7 is random, its start a time. */
const ID_DIGITS = 8;
/** Limits of the contract: OpenPullRequestRequest. */
const MAX_TITLE_CHARACTERS = 500;
const MAX_BODY_CHARACTERS = 20_000;

/** Returns the proposed branch, which is the same for each push. */
export function proposedBranch(origin: PushOrigin): string {
  const slug = proposedTitle(origin)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .slice(0, MAX_SLUG_CHARACTERS)
    .replaceAll(/^-+|-+$/g, "");
  return ["chartroom/", slug, slug && "-", origin.id.slice(-ID_DIGITS)].join("");
}

/** Returns the proposed title. */
export function proposedTitle({ name, firstMessage, id }: PushOrigin): string {
  const [line = ""] = firstMessage.trim().split("\n");
  const title = name.trim() || line.trim() || `Changes of ${id}`;
  return [...title].slice(0, MAX_TITLE_CHARACTERS).join("");
}

/** Returns the proposed text of the pull request. */
export function proposedBody({ firstMessage }: PushOrigin): string {
  return [...firstMessage.trim()].slice(0, MAX_BODY_CHARACTERS).join("");
}

/** Requires that git allows a name for a branch. @throws DomainError VALUE_UNUSABLE */
export function requireBranch(branch: string, field: string): void {
  const problem = branch.startsWith("refs/")
    ? "begins with refs/, which is written without it"
    : branchNameProblem(branch);
  if (problem !== undefined)
    throw valueUnusable(field, `git allows no branch name that ${problem}: choose another ${field}`);
  requireNoDeceptiveText(branch, field);
}

/** Returns whether an environment was made from a remote that a runner names, in any of its spellings. */
export function isMadeFrom(initializer: EnvironmentInitializer | undefined, remote: string): boolean {
  const remotes = (initializer?.specs ?? []).map(({ spec }) => {
    if (spec.case === "git") return spec.value.remoteUri;
    return spec.case === "contextUrl" ? sourceOfPage(spec.value.url).remoteUri : "";
  });
  const identity = repositoryIdentity(remote);
  // A folder of the runner's machine has no host, and no credential is sent to it.
  if (identity === undefined) return remotes.includes(remote);
  return remotes.some((each) => repositoryIdentity(each) === identity);
}

/** Requires that an environment was made from a remote that a runner names. @throws DomainError VALUE_UNUSABLE */
export function requireMadeFrom(
  initializer: EnvironmentInitializer | undefined,
  remote: string,
  field: string,
): void {
  if (isMadeFrom(initializer, remote)) return;
  throw valueUnusable(field, `${field} names a remote that the environment was not made from`);
}

/** The causes for which the server itself rejects a push. */
export type PushCause =
  | "approval_denied"
  | "begun_by_fork"
  | "branch_taken"
  | "branch_is_base"
  | "base_unknown"
  | "pull_requests_unsupported"
  | "remote_unknown";

/**
 * Returns the error for a push that the server, the runner, the remote or its host rejects.
 * @param cause one of the server's causes, or one that the runner reports
 */
export function pushRefused(cause: PushCause | (string & {}), message: string): DomainError {
  return new DomainError(ErrorReason.PUSH_REFUSED, `nothing was done: ${message}`, { cause });
}

/** Returns the error for a pull request that was possibly not opened although its branch was pushed. */
export function pullRequestNotKnown(cause: PushCause | (string & {}), message: string): DomainError {
  return new DomainError(
    ErrorReason.PUSH_REFUSED,
    `the branch is pushed, and no pull request is known to be open for it: ${message}`,
    { cause },
  );
}

/**
 * Requires that no pull request from a fork started an environment, whose contents could then be anybody's.
 * @throws DomainError PUSH_REFUSED
 */
export function requirePushable(environment: Environment): void {
  if (!isWithheld(environment)) return;
  throw pushRefused(
    "begun_by_fork",
    "the event of a pull request from a fork may have begun the environment: what is in it can be anybody's",
  );
}

/** Returns the error for a caller without a credential of its own. */
export function ownCredentialMissing(host: string): DomainError {
  return new DomainError(
    ErrorReason.CREDENTIAL_MISSING,
    `you have no credential for ${host} at the environment's runner: store one with CreateHostAuthenticationToken`,
    { host },
  );
}

/** Returns the error for a push when too many pushes of its environment already wait for approval. */
export function tooManyApprovals(limit: number): DomainError {
  const message = `pushes of the environment wait for ${limit} approvals, which is the maximum: have some of them decided first`;
  return limitReached("approval", limit, message);
}
