import { equals } from "@bufbuild/protobuf";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import { FollowedPullRequestSchema } from "#gen/service/v1/pull_request_pb.js";
import type { WorkflowExecution } from "#gen/service/v1/workflow_pb.js";
import { DomainError } from "../../../domain/error.ts";
import { requireExecutor } from "../../../domain/identity/executor.ts";
import { sourceKindsOf } from "../../../domain/source/source-trust.ts";
import { traceparentOf } from "../../../domain/trace/trace-context.ts";
import {
  failedPullRequest,
  failureDelayMs,
  followingDelayMs,
  MAX_FAILURES,
  type PullRequestReading,
  readPullRequest,
} from "../../../domain/workflow/pull-request/followed-pull-request.ts";
import type { Keys } from "../../../keys.ts";
import { findRunnerWithHostToken } from "../../../store/runner/host-token-choice.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import {
  findPullRequest,
  type StoredPullRequest,
  updatePullRequest,
} from "../../../store/workflow/pull-request/pull-request.ts";
import { findWholeExecution } from "../../../store/workflow/workflow-execution.ts";
import { getExecutorAsCaller } from "../../identity/executor.ts";
import { requireTrustedSource } from "../../identity/source-trust.ts";
import { readHostCredential } from "../../runner/host-token-secret.ts";
import { findExecutorAssigner } from "../execution/executor-assigner.ts";

/** The pull request to ask a host for. The token must not be stored. */
export interface PendingReading {
  readonly host: string;
  readonly repository: string;
  readonly number: number;
  readonly token: string;
  /** JSON that the last reading stored. */
  readonly memory: string;
  /** The span of the execution that opened it; undefined without a trace. */
  readonly traceparent?: string;
}

/** Why the executor's credential cannot be used, when only people can fix it. */
const REFUSALS: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.EXECUTOR_UNFIT,
  ErrorReason.CREDENTIAL_WITHHELD,
]);

/**
 * Returns the pull request to read, with the host token of its executor or opener. The audit log records that the
 * token was read. If the token may not be used, the pull request is no longer synchronized, and its record says why.
 *
 * @returns undefined when there is nothing to read
 */
export async function prepareReading(
  tx: WriteTransaction,
  scope: Scope,
  keys: Pick<Keys, "open">,
  id: string,
): Promise<PendingReading | undefined> {
  const stored = await findPullRequest(tx.db, scope, id);
  if (!stored) return undefined;
  const { openedBy } = stored.pullRequest;
  const execution = openedBy
    ? undefined
    : (await findWholeExecution(tx.db, scope, stored.executionId))?.execution;
  const user = openedBy ?? execution?.metadata?.executor;
  if (!user) return undefined;
  const { host, repository, number } = stored.place;
  const access = await findToken(tx, scope, keys, stored, user, execution);
  const trace = traceparentOf(execution?.metadata?.trace, stored.executionId);
  if ("token" in access)
    return { host, repository, number, token: access.token, memory: stored.memory, ...trace };
  await stopFollowing(tx, scope, stored, access.problem);
  return undefined;
}

async function findToken(
  tx: WriteTransaction,
  scope: Scope,
  keys: Pick<Keys, "open">,
  { place: { host }, sourceSetBy }: StoredPullRequest,
  user: Subject,
  execution: WorkflowExecution | undefined,
): Promise<{ readonly token: string } | { readonly problem: string }> {
  const subject = requireExecutor(user);
  try {
    await getExecutorAsCaller(tx, scope, subject);
    // A person who opens a pull request manually chooses its repository, so only executions need the check.
    if (execution) {
      await requireTrustedSource(tx, scope, {
        host,
        executor: subject,
        namedBy: await findExecutorAssigner(tx, scope, execution),
        setters: sourceSetBy,
        kinds: sourceKindsOf(execution, false),
      });
    }
  } catch (error) {
    if (!(error instanceof DomainError) || !REFUSALS.has(error.reason)) throw error;
    return { problem: error.message };
  }
  const runnerId = await findRunnerWithHostToken(tx.db, scope, { host, subject }, tx.now);
  const credential = runnerId && (await readHostCredential(tx, scope, keys, { runnerId, host, subject }));
  return credential
    ? { token: credential.secrets.token }
    : { problem: `${execution ? "the executor" : "the one who opened it"} has no credential for ${host}` };
}

/** Stores the state of a pull request, unless it was removed in the meantime. */
export async function applyReading(
  tx: WriteTransaction,
  scope: Scope,
  id: string,
  { reading, memory }: { readonly reading: PullRequestReading; readonly memory: string },
): Promise<void> {
  const stored = await findPullRequest(tx.db, scope, id);
  if (!stored) return;
  const { pullRequest: before } = stored;
  const after = readPullRequest(before, reading);
  const isOpen = reading.state === "open";
  const isChanged = !equals(FollowedPullRequestSchema, before, after);
  const at = isOpen ? tx.now + followingDelayMs(isChanged ? 0 : tx.now - stored.changedAt) : null;
  await updatePullRequest(
    tx,
    scope,
    before,
    after,
    { at, failures: 0, memory, isSeen: true },
    stored.ownerId,
  );
}

/** A reading that failed. */
export interface FailedReading {
  /** Text for people, without secrets. */
  readonly problem: string;
  /** False when the same request cannot succeed later. */
  readonly isRetriable: boolean;
  /** The time that the host asks to wait. */
  readonly retryAfterMs: number | undefined;
}

/** Stores that a reading failed, and when the next one is due, if there is one. */
export async function applyFailedReading(
  tx: WriteTransaction,
  scope: Scope,
  id: string,
  { problem, isRetriable, retryAfterMs }: FailedReading,
): Promise<void> {
  const stored = await findPullRequest(tx.db, scope, id);
  if (!stored) return;
  const failures = stored.failures + 1;
  if (!isRetriable || failures >= MAX_FAILURES) return stopFollowing(tx, scope, stored, problem);
  const { pullRequest: before } = stored;
  const at = tx.now + failureDelayMs(failures, retryAfterMs);
  const after = failedPullRequest(before, problem, false);
  await updatePullRequest(tx, scope, before, after, { at, failures, isSeen: false }, stored.ownerId);
}

async function stopFollowing(
  tx: WriteTransaction,
  scope: Scope,
  { pullRequest: before, failures, ownerId }: StoredPullRequest,
  problem: string,
): Promise<void> {
  const after = failedPullRequest(before, problem, true);
  await updatePullRequest(tx, scope, before, after, { at: null, failures, isSeen: false }, ownerId);
}
