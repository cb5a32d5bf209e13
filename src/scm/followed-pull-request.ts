import { ScmFailure } from "./failure.ts";
import { type Fields, readFields } from "./response-fields.ts";

/**
 * The combined state of the checks of a pull request's newest commit: `none` without checks,
 * `failed` as soon as one has failed, even while others run, `passed` when all have passed.
 */
export type ChecksState = "none" | "pending" | "failed" | "passed";

/** The present state of a pull request. */
export interface PullRequestFacts {
  readonly state: "open" | "merged" | "closed";
  readonly title: string;
  readonly draft: boolean;
  /** The branch with the changes, and its newest commit. */
  readonly branch: string;
  readonly headSha: string;
  /** The branch that it is merged into. */
  readonly base: string;
}

/** A pull request with its checks. */
export interface FollowedPullRequest extends PullRequestFacts {
  /** Undefined once the pull request is merged or closed: its checks are no longer read. */
  readonly checks: ChecksState | undefined;
}

/** Returns the combined state of checks from several sources. */
export function combineChecks(states: readonly ChecksState[]): ChecksState {
  for (const state of ["failed", "pending", "passed"] as const) if (states.includes(state)) return state;
  return "none";
}

const COMMIT = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
const MAX_TITLE_CHARACTERS = 500;
const MAX_BRANCH_CHARACTERS = 255;

/**
 * Reads the hash of a commit, which becomes a part of a path.
 * @throws ScmFailure unreadable
 */
export function commitIn(host: string, from: Fields, name: string): string {
  const value = from[name];
  if (typeof value === "string" && COMMIT.test(value)) return value;
  throw new ScmFailure("unreadable", host, `answered without the commit ${name}`);
}

/** Reads a text for people; control characters become spaces, and a long one is cut. */
export function titleIn(from: Fields, name: string): string {
  const text = from[name];
  if (typeof text !== "string") return "";
  const line = text.toWellFormed().replace(/\p{Cc}/gu, " ");
  return [...line].slice(0, MAX_TITLE_CHARACTERS).join("");
}

/**
 * Reads the name of a branch.
 * @throws ScmFailure unreadable
 */
export function branchIn(host: string, from: Fields, name: string): string {
  const value = from[name];
  const isName =
    typeof value === "string" &&
    value !== "" &&
    value.isWellFormed() &&
    value.length <= MAX_BRANCH_CHARACTERS &&
    !/\p{Cc}/u.test(value);
  if (isName) return value;
  throw new ScmFailure("unreadable", host, `answered without the branch ${name}`);
}

/**
 * Reads a pull request in the form that GitHub and Gitea share.
 * @throws ScmFailure unreadable
 */
export function readPullRequestFacts(host: string, body: unknown): PullRequestFacts {
  const from = readFields(body);
  const [head, base] = [readFields(from.head), readFields(from.base)];
  const isMerged = from.merged === true || typeof from.merged_at === "string";
  if (from.state !== "open" && from.state !== "closed") {
    throw new ScmFailure("unreadable", host, "answered without the state of the pull request");
  }
  return {
    state: isMerged ? "merged" : from.state,
    title: titleIn(from, "title"),
    draft: from.draft === true,
    branch: branchIn(host, head, "ref"),
    headSha: commitIn(host, head, "sha"),
    base: branchIn(host, base, "ref"),
  };
}
