import { clone, create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { PullRequest_State as State } from "#gen/service/v1/agent_pb.js";
import type { EnvironmentInitializer } from "#gen/service/v1/environment_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import {
  PullRequestChecks as Checks,
  type FollowedPullRequest,
  FollowedPullRequestSchema,
  PullRequestFollowing as Following,
} from "#gen/service/v1/pull_request_pb.js";
import type { WorkflowExecutionAction, WorkflowStep } from "#gen/service/v1/workflow_pb.js";
import { sourceOfPage } from "../../source/context-url.ts";
import { repositoryIdentity } from "../../source/repository-identity.ts";
import { repositoryPath } from "../../source/repository-path.ts";

/** The location of a pull request at its host. */
export interface PullRequestPlace {
  /** The host as host tokens name it, with a port where it needs one. */
  readonly host: string;
  /** As in `owner/name`. */
  readonly repository: string;
  /** The result of repositoryIdentity. */
  readonly identity: string;
  readonly number: number;
}

/** Maximum length of the host of a host token, in characters. */
const MAX_HOST_CHARACTERS = 253;
const NUMBER_IN_URL = /\/(?:pulls?|merge_requests)\/([1-9][0-9]{0,14})\/?$/;

/**
 * Returns the location of a pull request that a runner reports. The repository is taken from the work's
 * own source, so that a credential is sent nowhere else; only the number comes from the URL.
 * @param initializer initializer of the work's environment
 * @returns undefined if the source is not at a host, or the URL has no number
 */
export function placeOfPullRequest(
  initializer: EnvironmentInitializer | undefined,
  url: string,
): PullRequestPlace | undefined {
  return placeAtRemote(firstRemote(initializer), url);
}

/**
 * Returns the location of a pull request in the repository of a remote; only the number comes from the URL. Undefined
 * if the remote is not at a host, or the URL has no number.
 */
export function placeAtRemote(remote: string, url: string): PullRequestPlace | undefined {
  const identity = repositoryIdentity(remote);
  const host = identity?.split("/")[0];
  const repository = repositoryPath(remote);
  const number = NUMBER_IN_URL.exec(URL.parse(url)?.pathname ?? "")?.[1];
  if (!identity || !host || !repository || number === undefined) return undefined;
  if (host.length > MAX_HOST_CHARACTERS) return undefined;
  return { host, repository, identity, number: Number(number) };
}

function firstRemote(initializer: EnvironmentInitializer | undefined): string {
  const spec = initializer?.specs[0]?.spec;
  if (spec?.case === "git") return spec.value.remoteUri;
  return spec?.case === "contextUrl" ? sourceOfPage(spec.value.url).remoteUri : "";
}

/** A pull request that a step of an action has opened. */
export interface OpenedByStep {
  readonly id: string;
  readonly action: WorkflowExecutionAction;
  readonly stepIndex: number;
  readonly step: WorkflowStep | undefined;
  readonly url: string;
  readonly place: PullRequestPlace;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
}

/** Returns the record of a pull request that has not been read yet, filled with what the step asked for. */
export function newFollowedPullRequest(opened: OpenedByStep): FollowedPullRequest {
  const { id, action, stepIndex, step, url, place, now } = opened;
  const asked = step?.step.case === "pullRequest" ? step.step.value : undefined;
  return create(FollowedPullRequestSchema, {
    id,
    workflowExecutionId: action.metadata?.workflowExecutionId ?? "",
    workflowExecutionActionId: action.id,
    environmentId: action.status?.environmentId ?? "",
    stepIndex,
    pullRequest: {
      id: String(place.number),
      title: asked?.title ?? "",
      fromBranch: asked?.branch ?? "",
      draft: asked?.draft ?? false,
      url,
      state: State.OPEN,
      repository: repositoryOf(place),
    },
    following: Following.ACTIVE,
    openedAt: timestampFromMs(now),
  });
}

/** A pull request that a person or an agent run has opened from an environment. */
export interface OpenedByHand {
  readonly id: string;
  readonly environmentId: string;
  /** Empty for none. */
  readonly agentExecutionId: string;
  readonly openedBy: Subject;
  readonly title: string;
  readonly branch: string;
  readonly base: string;
  readonly headSha: string;
  readonly draft: boolean;
  readonly url: string;
  readonly place: PullRequestPlace;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
}

/** Returns the record of a pull request that has not been read yet, filled with what was asked for. */
export function followedByHand({ place, now, ...opened }: OpenedByHand): FollowedPullRequest {
  const { id, environmentId, agentExecutionId, openedBy, title, branch, base, headSha, draft, url } = opened;
  return create(FollowedPullRequestSchema, {
    id,
    environmentId,
    agentExecutionId,
    openedBy,
    pullRequest: {
      id: String(place.number),
      title,
      fromBranch: branch,
      toBranch: base,
      headSha,
      draft,
      url,
      state: State.OPEN,
      repository: repositoryOf(place),
    },
    following: Following.ACTIVE,
    openedAt: timestampFromMs(now),
  });
}

function repositoryOf({ host, repository }: PullRequestPlace) {
  const slash = repository.lastIndexOf("/");
  return {
    cloneUrl: `https://${host}/${repository}.git`,
    host,
    owner: repository.slice(0, slash),
    name: repository.slice(slash + 1),
  };
}

/** A host's report on a pull request. */
export interface PullRequestReading {
  readonly state: "open" | "merged" | "closed";
  readonly title: string;
  readonly draft: boolean;
  readonly branch: string;
  readonly headSha: string;
  readonly base: string;
  /** Undefined where they were not read. */
  readonly checks: "none" | "pending" | "failed" | "passed" | undefined;
}

const STATES = { open: State.OPEN, merged: State.MERGED, closed: State.CLOSED } as const;
const CHECKS = {
  none: Checks.NONE,
  pending: Checks.PENDING,
  failed: Checks.FAILED,
  passed: Checks.PASSED,
} as const;

/** Returns the record after a reading. */
export function readPullRequest(
  before: FollowedPullRequest,
  reading: PullRequestReading,
): FollowedPullRequest {
  const after = clone(FollowedPullRequestSchema, before);
  const { pullRequest } = after;
  if (!pullRequest) throw new Error(`the record ${before.id} has no pull request`);
  pullRequest.state = STATES[reading.state];
  pullRequest.title = reading.title;
  pullRequest.draft = reading.draft;
  pullRequest.fromBranch = reading.branch;
  pullRequest.toBranch = reading.base;
  pullRequest.headSha = reading.headSha;
  if (reading.checks) after.checks = CHECKS[reading.checks];
  after.following = reading.state === "open" ? Following.ACTIVE : Following.ENDED;
  after.problem = "";
  return after;
}

const MAX_PROBLEM_CHARACTERS = 1_000;

/** Returns the record after a reading that failed. @param isFinal true if it will not be read again */
export function failedPullRequest(
  before: FollowedPullRequest,
  problem: string,
  isFinal: boolean,
): FollowedPullRequest {
  const after = clone(FollowedPullRequestSchema, before);
  after.problem = [...problem].slice(0, MAX_PROBLEM_CHARACTERS).join("");
  if (isFinal) after.following = Following.STOPPED;
  return after;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Returns the time to the next reading: a tenth of the time since the last change, between a minute and an hour. */
export function followingDelayMs(unchangedMs: number): number {
  return Math.min(HOUR_MS, Math.max(MINUTE_MS, Math.floor(unchangedMs / 10)));
}

/** Maximum number of consecutive failed readings. The last ones are an hour apart, so they span most of a day. */
export const MAX_FAILURES = 24;

/**
 * Returns the time to the next reading after one that failed: a minute, doubled with each further
 * failure, up to an hour; never before the host accepts requests again.
 * @param failures number of consecutive failed readings, from 1
 */
export function failureDelayMs(failures: number, retryAfterMs = 0): number {
  return Math.max(retryAfterMs, Math.min(HOUR_MS, MINUTE_MS * 2 ** Math.min(failures - 1, 6)));
}

/** The minimum time between two readings, however many events about the pull request arrive. */
const MIN_READING_MS = 10_000;

/** Returns when to read a pull request after an event about it. @param seenAt when it was last read */
export function readingTimeAfterEvent(now: number, seenAt: number | null): number {
  return Math.max(now, (seenAt ?? 0) + MIN_READING_MS);
}
