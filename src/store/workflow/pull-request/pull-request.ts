import { equals } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import { type FollowedPullRequest, FollowedPullRequestSchema } from "#gen/service/v1/pull_request_pb.js";
import {
  type PullRequestPlace,
  readingTimeAfterEvent,
} from "../../../domain/workflow/pull-request/followed-pull-request.ts";
import { unindexed } from "../../expressions.ts";
import { subjectsOf, subjectsText } from "../../identity/source-setter.ts";
import { fromBody, toBody } from "../../json.ts";
import { prepared } from "../../prepared.ts";
import { builderOf } from "../../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../../store.ts";
import type { PullRequestTable } from "./pull-request-schema.ts";

/** A pull request with the values needed to read it from its host. */
export interface StoredPullRequest {
  readonly pullRequest: FollowedPullRequest;
  readonly place: PullRequestPlace;
  readonly executionId: string;
  /** Empty outside of workflows, as is the id of the execution. */
  readonly actionId: string;
  /** As `owner_id` of the row. */
  readonly ownerId: string | null;
  readonly sourceSetBy: readonly Subject[];
  readonly changedAt: number;
  readonly failures: number;
  /** JSON, as `memory` of the row. */
  readonly memory: string;
}

const insertRow = prepared<PullRequestTable, unknown>((db, row) =>
  db.insertInto("pull_request").values({
    id: row.id,
    organization_id: row.organization_id,
    workflow_id: row.workflow_id,
    execution_id: row.execution_id,
    action_id: row.action_id,
    environment_id: row.environment_id,
    agent_execution_id: row.agent_execution_id,
    owner_id: row.owner_id,
    owner_principal: row.owner_principal,
    host: row.host,
    repository: row.repository,
    identity: row.identity,
    number: row.number,
    head_sha: row.head_sha,
    state: row.state,
    source_set_by: row.source_set_by,
    changed_at: row.changed_at,
    seen_at: row.seen_at,
    next_poll_at: row.next_poll_at,
    failures: row.failures,
    memory: row.memory,
    body: row.body,
  }),
);

/** Adds a pull request, which is to be read at once. */
export async function insertPullRequest(
  tx: WriteTransaction,
  scope: Scope,
  pullRequest: FollowedPullRequest,
  facts: {
    readonly workflowId: string;
    readonly place: PullRequestPlace;
    readonly sourceSetBy: readonly Subject[];
    /** The only subject besides administrators that may read it; undefined if everyone may. */
    readonly owner?: Pick<Subject, "id" | "principal"> | undefined;
  },
): Promise<void> {
  const { host, repository, identity, number } = facts.place;
  await insertRow(tx.db, {
    id: pullRequest.id,
    organization_id: scope.organizationId,
    workflow_id: facts.workflowId,
    execution_id: pullRequest.workflowExecutionId,
    action_id: pullRequest.workflowExecutionActionId || null,
    environment_id: pullRequest.environmentId,
    agent_execution_id: pullRequest.agentExecutionId || null,
    owner_id: facts.owner?.id ?? null,
    owner_principal: facts.owner?.principal ?? null,
    host,
    repository,
    identity,
    number,
    source_set_by: subjectsText(facts.sourceSetBy),
    changed_at: tx.now,
    seen_at: null,
    next_poll_at: tx.now,
    failures: 0,
    memory: "{}",
    ...changingColumns(pullRequest),
  });
  record(tx, scope, undefined, pullRequest, facts.owner?.id ?? null);
}

const selectSame = prepared<
  { organizationId: string; actionId: string; host: string; repository: string; number: number },
  { id: string }
>((db, { organizationId, actionId, host, repository, number }) =>
  db
    .selectFrom("pull_request")
    .select("id")
    .where("action_id", "=", actionId)
    .where("host", "=", host)
    .where("repository", "=", repository)
    .where("number", "=", number)
    .where(unindexed("pull_request.organization_id"), "=", organizationId),
);

/** Returns whether an action has reported a pull request before. */
export async function isPullRequestKnown(
  db: Reader,
  { organizationId }: Scope,
  actionId: string,
  { host, repository, number }: PullRequestPlace,
): Promise<boolean> {
  return (await selectSame(db, { organizationId, actionId, host, repository, number })).length > 0;
}

const selectOne = prepared<{ id: string; organizationId: string }, PullRequestTable>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("pull_request")
      .selectAll()
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

export async function findPullRequest(
  db: Reader,
  { organizationId }: Scope,
  id: string,
): Promise<StoredPullRequest | undefined> {
  const [row] = await selectOne(db, { id, organizationId });
  if (!row) return undefined;
  const { host, repository, identity, number } = row;
  return {
    pullRequest: pullRequestOfRow(row),
    place: { host, repository, identity, number },
    executionId: row.execution_id,
    actionId: row.action_id ?? "",
    ownerId: row.owner_id,
    sourceSetBy: subjectsOf(row.source_set_by),
    changedAt: row.changed_at,
    failures: row.failures,
    memory: row.memory,
  };
}

/** The time and state of the next reading of a pull request. */
export interface NextReading {
  /** Milliseconds since 1970 UTC; null when it is no longer tracked. */
  readonly at: number | null;
  readonly failures: number;
  /** JSON; undefined for no change. */
  readonly memory?: string;
  /** True when the host reported its state. */
  readonly isSeen: boolean;
}

/** Stores the result of a reading; only a change of the pull request is recorded. */
export async function updatePullRequest(
  tx: WriteTransaction,
  scope: Scope,
  before: FollowedPullRequest,
  after: FollowedPullRequest,
  { at, failures, memory, isSeen }: NextReading,
  ownerId: string | null,
): Promise<void> {
  const isChanged = !equals(FollowedPullRequestSchema, before, after);
  await builderOf(tx.db)
    .updateTable("pull_request")
    .set({
      next_poll_at: at,
      failures,
      ...(memory !== undefined && { memory }),
      ...(isSeen && { seen_at: tx.now }),
      ...(isChanged && { ...changingColumns(after), changed_at: tx.now }),
    })
    .where("id", "=", before.id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  if (isChanged) record(tx, scope, before, after, ownerId);
}

/** A pull request that is due to be read. */
export interface DuePullRequest extends Scope {
  readonly id: string;
  readonly host: string;
}

const selectDue = prepared<{ now: number; limit: number }, DuePullRequest>((db, { now, limit }) =>
  db
    .selectFrom("pull_request")
    .select(["id", "organization_id as organizationId", "host"])
    .where("next_poll_at", "is not", null)
    .where("next_poll_at", "<=", now)
    .orderBy("next_poll_at")
    .limit(limit),
);

/** Returns up to `limit` pull requests that are to be read, the most overdue first. For jobs, so without a scope. */
export async function findDuePullRequests(db: Reader, now: number, limit: number): Promise<DuePullRequest[]> {
  return selectDue(db, { now, limit });
}

/** The subject of an event: one pull request, or the checks of a commit. */
export type PullRequestHint =
  | { readonly number: number }
  /** Matches those of the repository's pull requests whose newest commit this is. */
  | { readonly headSha: string };

/** Maximum number of pull requests that one event makes due at once. */
const MAX_HINTED = 25;

/** Makes the pull requests that an event concerns due at once, including those that are no longer tracked. */
export async function hintPullRequests(
  tx: WriteTransaction,
  scope: Scope,
  identities: readonly string[],
  hint: PullRequestHint,
): Promise<void> {
  const { organizationId } = scope;
  const ofRepository = builderOf(tx.db)
    .selectFrom("pull_request")
    .select(["id", "seen_at as seenAt", "next_poll_at as nextAt"])
    .where("organization_id", "=", organizationId)
    .where("identity", "in", identities);
  const query =
    "number" in hint
      ? ofRepository.where("number", "=", hint.number)
      : ofRepository.where("head_sha", "=", hint.headSha);
  const found = await query.orderBy("id", "desc").limit(MAX_HINTED).execute();
  for (const { id, seenAt, nextAt } of found) {
    const at = readingTimeAfterEvent(tx.now, seenAt);
    if (nextAt !== null && nextAt <= at) continue;
    await builderOf(tx.db)
      .updateTable("pull_request")
      .set({ next_poll_at: at })
      .where("id", "=", id)
      .where("organization_id", "=", organizationId)
      .execute();
  }
}

/** Converts a row to a pull request. */
export function pullRequestOfRow({
  body,
  seen_at,
}: Pick<PullRequestTable, "body" | "seen_at">): FollowedPullRequest {
  const pullRequest = fromBody(FollowedPullRequestSchema, body);
  if (seen_at !== null) pullRequest.seenAt = timestampFromMs(seen_at);
  return pullRequest;
}

function changingColumns(pullRequest: FollowedPullRequest) {
  return {
    head_sha: pullRequest.pullRequest?.headSha ?? "",
    state: pullRequest.pullRequest?.state ?? 0,
    body: bodyOf(pullRequest),
  };
}

/** Returns the body, without the values that each reading changes. */
function bodyOf({ seenAt: _, ...kept }: FollowedPullRequest): string {
  return toBody(FollowedPullRequestSchema, kept);
}

function record(
  tx: WriteTransaction,
  { organizationId }: Scope,
  before: FollowedPullRequest | undefined,
  after: FollowedPullRequest,
  ownerId: string | null,
): void {
  tx.record({
    organizationId,
    type: "pull_request",
    id: after.id,
    kind: before ? "updated" : "created",
    ...(before && { before: bodyOf(before) }),
    after: bodyOf(after),
    facts: { environmentId: after.environmentId || null, ownerId },
  });
}
