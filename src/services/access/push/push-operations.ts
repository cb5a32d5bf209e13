import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import type {
  AnswerRequestRequest_BranchPushed as BranchPushed,
  EnvironmentQuestion_PushBranchSchema as PushBranchSchema,
} from "#gen/runner/v1/environment_question_pb.js";
import type { ApprovalPushSchema } from "#gen/service/v1/approval_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import {
  type EnvironmentPushSchema,
  EnvironmentPush_Outcome as Outcome,
  EnvironmentPush_State as State,
} from "#gen/service/v1/environment_push_pb.js";
import type {
  OpenPullRequestRequest,
  PushEnvironmentBranchRequest,
} from "#gen/service/v1/environment_service_pb.js";
import type { FollowedPullRequest } from "#gen/service/v1/pull_request_pb.js";
import {
  isMadeFrom,
  proposedBody,
  proposedBranch,
  proposedTitle,
  pushRefused,
  requireBranch,
  requirePushable,
} from "../../../domain/environment/environment-push.ts";
import { notFound } from "../../../domain/error.ts";
import { requireNoDeceptiveText } from "../../../domain/text/deceptive-text.ts";
import { findEnvironment } from "../../../store/environment/environment.ts";
import { recordPush } from "../../../store/environment/environment-push.ts";
import { callerOf, requireOwnership, writeAsCaller, writePartAsCaller } from "../../call/call.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import type { QuestionDependencies } from "../../environment/environment-question.ts";
import { waitEnd } from "../../environment/long-running-question.ts";
import { type FoundOrigin, findAuthor, findPushOrigin } from "./push-origin.ts";
import {
  findKnownPullRequest,
  type OpenedRequest,
  openAtHost,
  type PullRequestHosts,
  requireHost,
} from "./push-pull-request.ts";
import { askToPush, awaitBegunPush, type PushInProgress, requireDone } from "./push-question.ts";
import { carryOut, type KnownPush, rulePush } from "./push-ruling.ts";

/** The dependencies of operations that push. */
export type PushDependencies = QuestionDependencies &
  Pick<ServiceDependencies, "store" | "keys"> & {
    readonly hosts: PullRequestHosts;
  };

/** Pushes the contents of a repository of an environment, with the caller's own credential. */
export async function pushEnvironmentBranch(
  deps: PushDependencies,
  req: PushEnvironmentBranchRequest,
  ctx: HandlerContext,
) {
  const { environment, origin } = await findOwned(deps, ctx, req.environmentId);
  const { push, known } = await pushAs(deps, ctx, environment, origin, req, undefined);
  return finish(deps, ctx, known, { push });
}

/** Pushes, and opens a pull request for the branch. */
export async function openPullRequest(
  deps: PushDependencies,
  req: OpenPullRequestRequest,
  ctx: HandlerContext,
) {
  requireNoDeceptiveText(req.title, "title");
  requireNoDeceptiveText(req.body ?? "", "body");
  const { environment, origin } = await findOwned(deps, ctx, req.environmentId);
  const { title, body, base, draft } = req;
  const wanted = {
    title: title || proposedTitle(origin),
    body: body ?? proposedBody(origin),
    base,
    draft,
  };
  const { push, pullRequest, known } = await pushAs(deps, ctx, environment, origin, req, wanted);
  return finish(deps, ctx, known, { push, ...(pullRequest && { pullRequest }) });
}

/** Ends an operation. @param known the push that was made; undefined for none */
function finish<T>(
  { store }: PushDependencies,
  ctx: HandlerContext,
  known: KnownPush | undefined,
  response: T,
): Promise<T> {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    if (known) await carryOut(tx, caller, known);
    return response;
  });
}

/** Returns an environment that the caller may push from, and the source of the push's default names. */
async function findOwned({ store }: PushDependencies, ctx: HandlerContext, environmentId: string) {
  const caller = callerOf(ctx);
  const environment = await findEnvironment(store.reader, caller, environmentId);
  if (!environment) throw notFound("environment");
  requireOwnership(ctx, environment.metadata?.creator);
  requirePushable(environment);
  return { environment, origin: await findPushOrigin(store.reader, caller, environment) };
}

type PushRequest = Pick<
  PushEnvironmentBranchRequest,
  "branch" | "folder" | "commitMessage" | "force" | "environmentId"
>;

/** A requested pull request; its base may be left to the remote. */
type WantedPullRequest = Omit<OpenedRequest, "branch" | "headSha" | "remote">;

/** The progress of a push. */
interface Pushed {
  readonly push: MessageInitShape<typeof EnvironmentPushSchema>;
  readonly pullRequest?: FollowedPullRequest | undefined;
  /** The push with its commit; undefined if there was nothing to do, or if people must decide. */
  readonly known?: KnownPush;
}

/**
 * Inspects a push, decides on it, executes it, and opens the pull request. Each step continues where an earlier,
 * interrupted call stopped.
 */
async function pushAs(
  given: PushDependencies,
  ctx: HandlerContext,
  environment: Environment,
  origin: FoundOrigin,
  req: PushRequest,
  wanted: WantedPullRequest | undefined,
): Promise<Pushed> {
  // One limit for the whole operation: each question gets the remaining time.
  const deps = { ...given, until: waitEnd(given.now(), ctx.timeoutMs()) };
  const { store } = deps;
  const caller = callerOf(ctx);
  const branch = req.branch || proposedBranch(origin);
  requireBranch(branch, "branch");
  if (wanted && wanted.base !== "") requireBranch(wanted.base, "base");
  requireNoDeceptiveText(req.commitMessage, "commitMessage");
  const question: MessageInitShape<typeof PushBranchSchema> = {
    ...(req.folder !== undefined && { folder: req.folder }),
    branch,
    commitMessage: req.commitMessage,
    ...(await findAuthor(store.reader, caller)),
    credentialOf: caller.subject,
  };
  const begun = await awaitBegunPush(deps, ctx, environment, question);
  if (begun && !begun.pushed) return goingOn(environment, { branch }, begun);
  const looked = await askToPush(deps, ctx, environment, question);
  if (!looked.pushed) return goingOn(environment, { branch }, looked);
  const look = looked.pushed;
  if (!isMadeFrom(environment.spec?.content?.initializer, look.remote))
    throw pushRefused("remote_unknown", "the runner names a remote that the environment was not made from");
  const proposal = wanted && { ...wanted, base: baseOf(wanted.base, look, branch) };
  // Checked before the push: without the pull request, only half of the request would be done.
  if (proposal) await requireHost(deps, look.remote, ctx.signal);
  const push = pushOf(environment, look, branch);
  const isThere = look.tip === look.commit;
  // The remote may have accepted a push without confirming it, so the branch counts more than a reported failure.
  if (begun && !isThere) requireDone(begun.pushed);
  const there = begun?.pushed.outcome || Outcome.UNCHANGED;
  if (isThere && proposal) {
    const found = await findKnownPullRequest(store.reader, caller, environment, {
      branch,
      look,
      base: proposal.base,
    });
    if (found) return { push: { ...push, outcome: there }, pullRequest: found };
  }
  if (look.isForced && !req.force) {
    throw pushRefused(
      "branch_taken",
      `the remote's branch ${JSON.stringify(branch)} has commits that the push would remove: name another branch, or ask for it with force`,
    );
  }
  const content: MessageInitShape<typeof ApprovalPushSchema> & { branch: string; force: boolean } = {
    remote: look.remote,
    branch,
    commit: look.commit,
    force: look.isForced,
    ...(proposal && { pullRequest: proposal }),
  };
  const known: KnownPush = { environment, content, defaultBranch: look.defaultBranch };
  if (isThere && !proposal) {
    // An earlier call may have been interrupted after the push.
    return { push: { ...push, outcome: there }, known };
  }
  const decision = await writePartAsCaller(store, ctx, async (tx) => {
    const decision = await rulePush(tx, caller, known);
    // Recorded before the push, so that the record exists even if the server is killed afterwards.
    if (decision.isAllowed) recordPush(tx, caller, environment, content);
    return decision;
  });
  if (!decision.isAllowed) {
    const waiting = { ...push, state: State.WAITING_FOR_APPROVAL, approvalId: decision.approvalId };
    return { push: waiting };
  }
  let outcome: Outcome = there;
  if (!isThere) {
    const decided = {
      commit: look.commit,
      tip: look.tip,
      mayBeDefault: decision.mayBeDefault,
      mayForce: look.isForced,
    };
    const done = await askToPush(deps, ctx, environment, { ...question, decided });
    if (!done.pushed) return goingOn(environment, push, done);
    outcome = done.pushed.outcome;
  }
  const pullRequest = proposal
    ? await openAtHost(deps, ctx, environment, origin, {
        ...proposal,
        branch,
        headSha: look.commit,
        remote: look.remote,
      })
    : undefined;
  return { push: { ...push, outcome }, pullRequest, known };
}

function pushOf(
  { id }: Environment,
  { folder, remote, commit }: BranchPushed,
  branch: string,
): MessageInitShape<typeof EnvironmentPushSchema> {
  return { environmentId: id, folder, remote, branch, commit, state: State.DONE };
}

/** Returns a push that the runner is still carrying out. @param push what is known about it */
function goingOn(
  { id: environmentId }: Environment,
  push: MessageInitShape<typeof EnvironmentPushSchema>,
  { progress }: PushInProgress,
): Pushed {
  return { push: { environmentId, ...push, state: State.GOING_ON, ...(progress && { progress }) } };
}

/** Returns the branch that a pull request is meant for. @throws DomainError PUSH_REFUSED */
function baseOf(asked: string, { baseBranch, defaultBranch }: BranchPushed, branch: string): string {
  const found = baseBranch === branch ? defaultBranch : baseBranch;
  const base = asked || found || defaultBranch;
  if (base === "")
    throw pushRefused(
      "base_unknown",
      "the remote has no default branch to open a pull request against: name a base",
    );
  if (base !== branch) return base;
  throw pushRefused("branch_is_base", "the branch is the one that the changes are meant for: name another");
}
