import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type EnvironmentQuestion_ReadRemote as ReadRemote,
  EnvironmentQuestion_ReadRemoteSchema as ReadRemoteSchema,
  type AnswerRequestRequest_RemoteRead as RemoteRead,
} from "#gen/runner/v1/environment_question_pb.js";
import type { PullRequestSchema } from "#gen/service/v1/agent_pb.js";
import {
  type CheckRepositoryAccessRequest,
  CheckRepositoryAccessResponseSchema,
  type ParseContextURLRequest,
  ParseContextURLResponseSchema,
} from "#gen/service/v1/runner_service_pb.js";
import { notFound } from "../../domain/error.ts";
import { requireLocalRunnersAllowed } from "../../domain/policy/agent-policy.ts";
import {
  repositoryUnreadable,
  requireAskable,
  requireRoomForQuestion,
  runnerUnreachable,
} from "../../domain/runner/runner-questions.ts";
import { type ContextPage, readContextUrl, spellingsOf } from "../../domain/source/context-page.ts";
import type { Target } from "../../domain/source/context-url.ts";
import { findAskers } from "../../store/environment/environment-question.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import { findStoredRunner, isLocal } from "../../store/runner/runner-life.ts";
import type { Store } from "../../store/store.ts";
import { callerOf } from "../call/call.ts";
import {
  askerOf,
  askGivenRunner,
  type QuestionDependencies,
  type QuestionTarget,
} from "../environment/environment-question.ts";

/**
 * Failures that say nothing about the repository: this server did not answer the runner, or the runner itself failed.
 */
const RUNNER_FAILURES = new Set(["refused_by_service", "runner_fault", "command_not_started"]);

/** Maximum time for a runner to read a remote (contract, ParseContextURL). */
const READ_MS = 30_000;

/** Maximum number of projects in a response (contract, ParseContextURLResponse.project_ids). */
const MAX_PROJECTS = 100;

type Dependencies = QuestionDependencies & { readonly store: Pick<Store, "projectSearch"> };

/** Returns the repository and the revision behind an address, and what a runner finds there. */
export async function parseContextUrl(
  deps: Dependencies,
  { runnerId, contextUrl }: ParseContextURLRequest,
  ctx: HandlerContext,
) {
  const page = readContextUrl(contextUrl, "contextUrl");
  const read = runnerId === "" ? undefined : await readRemote(deps, ctx, runnerId, page);
  if (read?.failure) throw repositoryUnreadable(read.failure);
  const { host, owner, repo, issue } = page;
  const cloneUrl = read?.remote || page.cloneUrl;
  return create(ParseContextURLResponseSchema, {
    originalContextUrl: page.address,
    git: { cloneUrl, host, owner, repo, ...revisionOf(page.target, read) },
    projectIds: await findProjectIds(deps.store, ctx, page),
    ...(page.pullRequest && { pullRequest: pullRequestOf(page, cloneUrl, read) }),
    ...(issue !== undefined && { issue: { id: issue } }),
  });
}

/** Returns whether a runner can read a repository for the caller. */
export async function checkRepositoryAccess(
  deps: Dependencies,
  { runnerId, repositoryUrl }: CheckRepositoryAccessRequest,
  ctx: HandlerContext,
) {
  const page = readContextUrl(repositoryUrl, "repositoryUrl");
  const { failure } = await readRemote(deps, ctx, runnerId, { ...page, target: { kind: "head" } });
  if (!failure) return create(CheckRepositoryAccessResponseSchema, { hasAccess: true });
  return create(CheckRepositoryAccessResponseSchema, {
    errorMessage: failure.message || "the runner gave no reason",
  });
}

/**
 * Has a runner read a remote.
 * @throws DomainError NOT_FOUND, RUNNER_UNREACHABLE, TOO_MANY_QUESTIONS, POLICY_DENIED, UNAVAILABLE
 */
async function readRemote(
  deps: Dependencies,
  ctx: HandlerContext,
  runnerId: string,
  { cloneUrl, target, pullRequest }: Pick<ContextPage, "cloneUrl" | "target" | "pullRequest">,
): Promise<RemoteRead> {
  const value = create(ReadRemoteSchema, {
    remote: cloneUrl,
    credentialOf: callerOf(ctx).subject,
    revision: revisionToFind(target),
    pullRequest: target.kind === "ref" ? (pullRequest?.number ?? 0) : 0,
    tagsOnly: target.kind === "path" && target.isTag === true,
  });
  const read = await askGivenRunner(deps, askerOf(deps, ctx), questionTarget(runnerId), {
    environmentId: "",
    question: { case: "readRemote", value },
    answer: "remoteRead",
    waitMs: READ_MS,
    // Otherwise callers that disconnect could make the runner read more remotes at the same time than it may.
    outlivesCaller: true,
  });
  if (RUNNER_FAILURES.has(read.failure?.reason ?? "")) throw runnerUnreachable("answer_failed");
  return read;
}

function revisionToFind(target: Target): ReadRemote["revision"] {
  switch (target.kind) {
    case "path":
      return { case: "path", value: target.path };
    case "tag":
      return { case: "tag", value: target.name };
    case "ref":
      return { case: "ref", value: target.ref };
    default:
      return { case: undefined };
  }
}

function questionTarget(runnerId: string): QuestionTarget {
  return {
    async find(tx, { scope, id }) {
      const known = await findStoredRunner(tx.db, scope, runnerId);
      if (!known) throw notFound("runner");
      if (isLocal(known)) requireLocalRunnersAllowed(await findPolicies(tx.db, scope));
      requireAskable(known, tx.now);
      requireRoomForQuestion(await findAskers(tx.db, scope, runnerId, tx.now), id);
      return runnerId;
    },
    unreachable: runnerUnreachable,
    failed: ({ reason }) => {
      // A runner of an earlier release does not know the question, and looks for its environment.
      const isUnknown = reason === "question_unknown" || reason === "environment_absent";
      return runnerUnreachable(isUnknown ? "question_unknown" : "answer_failed");
    },
  };
}

/** Returns what the page's address and the remote say about the revision. */
function revisionOf(target: Target, read: RemoteRead | undefined) {
  if (target.kind === "commit") return { commit: target.hash };
  if (read) return { branch: read.branch, tag: read.tag, commit: read.commit };
  return target.kind === "tag" ? { tag: target.name } : {};
}

function pullRequestOf(
  { pullRequest, host, owner, repo }: ContextPage,
  cloneUrl: string,
  read: RemoteRead | undefined,
): MessageInitShape<typeof PullRequestSchema> {
  const { title = "", fromBranch = "", toBranch = "", draft = false, state } = read?.pullRequest ?? {};
  return {
    ...{ title, fromBranch, toBranch, draft },
    ...(state !== undefined && { state }),
    id: String(pullRequest?.number ?? ""),
    url: pullRequest?.url ?? "",
    repository: { cloneUrl, host, owner, name: repo },
    headSha: read?.commit ?? "",
  };
}

async function findProjectIds(
  { projectSearch }: Pick<Store, "projectSearch">,
  ctx: HandlerContext,
  page: ContextPage,
): Promise<string[]> {
  const filter = {
    projectIds: [],
    search: "",
    runnerIds: [],
    runnerKinds: [],
    remoteUris: spellingsOf(page),
    creatorIds: [],
    annotations: {},
  };
  const order = { field: "id", direction: "asc" } as const;
  const wanted = { filter, order, after: undefined, limit: MAX_PROJECTS, countLimit: undefined };
  const { rows } = await projectSearch.find(callerOf(ctx), wanted, ctx.signal);
  return rows.map(({ id }) => id);
}
