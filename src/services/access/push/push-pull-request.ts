import type { HandlerContext } from "@connectrpc/connect";
import type { AnswerRequestRequest_BranchPushed as BranchPushed } from "#gen/runner/v1/environment_question_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import type { FollowedPullRequest } from "#gen/service/v1/pull_request_pb.js";
import {
  ownCredentialMissing,
  pullRequestNotKnown,
  pushRefused,
} from "../../../domain/environment/environment-push.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import { repositoryIdentity } from "../../../domain/source/repository-identity.ts";
import {
  followedByHand,
  placeAtRemote,
} from "../../../domain/workflow/pull-request/followed-pull-request.ts";
import { mayStore, PULL_REQUESTS_LEVEL } from "../../../store/feature-level.ts";
import type { Reader, WriteTransaction } from "../../../store/store.ts";
import {
  findOpenPullRequestsOf,
  findPullRequestAt,
} from "../../../store/workflow/pull-request/environment-pull-request.ts";
import { insertPullRequest } from "../../../store/workflow/pull-request/pull-request.ts";
import { callerOf, traceparentOfCall, writePartAsCaller } from "../../call/call.ts";
import { readHostCredential } from "../../runner/host-token-secret.ts";
import type { PushDependencies } from "./push-operations.ts";
import type { FoundOrigin } from "./push-origin.ts";

/** Source-control hosts, via their APIs. Each call throws DomainError PUSH_REFUSED. */
export interface PullRequestHosts {
  /** Returns whether a host opens pull requests. */
  opensPullRequests(host: string, signal: AbortSignal): Promise<boolean>;
  /** Opens a pull request, or returns the one that is open for the branch. */
  open(
    access: {
      readonly host: string;
      readonly token: string;
      readonly signal: AbortSignal;
      /** Trace context of the call; undefined without a trace. */
      readonly traceparent: string | undefined;
    },
    request: Omit<OpenedRequest, "headSha">,
  ): Promise<{ readonly url: string; readonly number: number }>;
}

/** A pull request to open for a pushed branch. */
export interface OpenedRequest {
  readonly remote: string;
  readonly branch: string;
  readonly headSha: string;
  readonly title: string;
  readonly body: string;
  readonly base: string;
  readonly draft: boolean;
}

/** Requires that the host of a remote opens pull requests. @throws DomainError PUSH_REFUSED */
export async function requireHost(
  { hosts }: Pick<PushDependencies, "hosts">,
  remote: string,
  signal: AbortSignal,
): Promise<void> {
  const host = hostOf(remote);
  if (host !== undefined && (await hosts.opensPullRequests(host, signal))) return;
  throw pushRefused(
    "pull_requests_unsupported",
    "the remote knows no pull requests: push the branch alone, and open one elsewhere",
  );
}

function hostOf(remote: string): string | undefined {
  return repositoryIdentity(remote)?.split("/")[0];
}

/** Returns the open pull request that was earlier opened for a branch of an environment. */
export async function findKnownPullRequest(
  db: Reader,
  caller: Caller,
  { id }: Environment,
  { branch, base, look }: { readonly branch: string; readonly base: string; readonly look: BranchPushed },
): Promise<FollowedPullRequest | undefined> {
  const identity = repositoryIdentity(look.remote) ?? "";
  const found = await findOpenPullRequestsOf(db, caller, id, identity);
  return found.find(({ pullRequest }) => pullRequest?.fromBranch === branch && pullRequest.toBranch === base);
}

/**
 * Opens a pull request with the caller's own credential, or finds the open one for the branch. Its state is
 * synchronized from then on.
 *
 * @throws DomainError CREDENTIAL_MISSING, PUSH_REFUSED
 */
export async function openAtHost(
  deps: PushDependencies,
  ctx: HandlerContext,
  environment: Environment,
  { agentExecutionId }: FoundOrigin,
  { remote, branch, headSha, title, body, base, draft }: OpenedRequest,
): Promise<FollowedPullRequest> {
  const { store, keys, hosts } = deps;
  const caller = callerOf(ctx);
  const host = hostOf(remote) ?? "";
  const runnerId = environment.metadata?.runnerId ?? "";
  const token = await writePartAsCaller(store, ctx, async (tx) => {
    const use = { runnerId, host, subject: caller.subject };
    return (await readHostCredential(tx, caller, keys, use))?.secrets.token;
  });
  if (token === undefined) throw ownCredentialMissing(host);
  const request = { remote, branch, title, body, base, draft };
  const { url, number } = await hosts.open(
    { host, token, signal: ctx.signal, traceparent: traceparentOfCall(ctx) },
    request,
  );
  const place = placeAtRemote(remote, url);
  if (!place)
    throw pullRequestNotKnown(
      "pull_requests_unsupported",
      `${host} has opened ${url}, which names no number`,
    );
  return writePartAsCaller(store, ctx, async (tx: WriteTransaction) => {
    const known = await findPullRequestAt(tx.db, caller, environment.id, { ...place, number });
    if (known) return known;
    const pullRequest = followedByHand({
      id: tx.newId(),
      environmentId: environment.id,
      agentExecutionId,
      openedBy: caller.subject,
      title,
      branch,
      base,
      headSha,
      draft,
      url,
      place,
      now: tx.now,
    });
    if (!mayStore(tx, PULL_REQUESTS_LEVEL)) return pullRequest;
    const owner = environment.metadata?.creator;
    const facts = { workflowId: "", place, sourceSetBy: [caller.subject], owner };
    await insertPullRequest(tx, caller, pullRequest, facts);
    return pullRequest;
  });
}
