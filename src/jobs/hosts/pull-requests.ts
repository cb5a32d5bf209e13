import type { Keys } from "../../keys.ts";
import { ScmFailure } from "../../scm/failure.ts";
import type { SourceControl } from "../../scm/source-control.ts";
import {
  applyFailedReading,
  applyReading,
  prepareReading,
} from "../../services/workflow/pull-request/pull-request-reading.ts";
import { type Store, SYSTEM, within } from "../../store/store.ts";
import { type DuePullRequest, findDuePullRequests } from "../../store/workflow/pull-request/pull-request.ts";
import type { JobFactory } from "../job.ts";

const EVERY_MS = 1_000;

const OPERATION = "job/pull-requests";

/** Maximum number of due pull requests from which one run chooses. */
const DUE_PER_RUN = 10_000;

/** Maximum number of concurrent readings, which is also that of one organization in a run. */
const MAX_CONCURRENT_READINGS = 4;

/** A reading takes up to three requests within this time. */
const READING_TIMEOUT_MS = 30_000;

/** The dependencies of {@link createPullRequestSync}. */
export interface PullRequestSyncContext {
  readonly store: Store;
  readonly keys: Pick<Keys, "open">;
  readonly scm: Pick<SourceControl, "readPullRequest">;
  /** Milliseconds since 1970 UTC. */
  readonly now: () => number;
  /** Cancels running readings when the server drains; they start over after the next start. */
  readonly draining: AbortSignal;
}

/**
 * Creates the function that reads due pull requests from their hosts, with the executor's token. When a host limits an
 * organization's requests, none of the organization's pull requests is read from it until the time that the host gave.
 *
 * @returns a function that does one run of the job
 */
export function createPullRequestSync(parts: PullRequestSyncContext): () => Promise<void> {
  /** The time until which a host is not contacted, by organization and host; lost at a restart. */
  const notBefore = new Map<string, number>();
  return async () => {
    for (const [key, until] of notBefore) if (until <= parts.now()) notBefore.delete(key);
    const found = await findDuePullRequests(parts.store.reader, parts.now(), DUE_PER_RUN);
    const due = firstOfEachOrganization(found.filter((each) => !notBefore.has(hostKey(each))));
    const next = due.values();
    const failures: unknown[] = [];
    const workers = Array.from({ length: Math.min(MAX_CONCURRENT_READINGS, due.length) }, async () => {
      for (const each of next) {
        if (parts.draining.aborted) return;
        if (notBefore.has(hostKey(each))) continue;
        try {
          const waitMs = await followOne(parts, each);
          if (waitMs > 0) notBefore.set(hostKey(each), parts.now() + waitMs);
        } catch (error) {
          failures.push(error);
        }
      }
    });
    // A run must not end before all of its workers: the next run would read concurrently.
    await Promise.all(workers);
    if (failures.length > 0) throw new AggregateError(failures, "pull requests were not read");
  };
}

const hostKey = ({ organizationId, host }: DuePullRequest) => `${organizationId} ${host}`;

/** Returns the most overdue pull requests of each organization, in order. */
function firstOfEachOrganization(found: readonly DuePullRequest[]): DuePullRequest[] {
  const counts = new Map<string, number>();
  return found.filter(({ organizationId }) => {
    const count = counts.get(organizationId) ?? 0;
    counts.set(organizationId, count + 1);
    return count < MAX_CONCURRENT_READINGS;
  });
}

/** @returns the time for which the host must not be contacted, in milliseconds; 0 without one */
async function followOne(
  { store, keys, scm, draining }: PullRequestSyncContext,
  { organizationId, id }: DuePullRequest,
): Promise<number> {
  const scope = { organizationId };
  const pending = await store.write(
    SYSTEM,
    OPERATION,
    (tx) => prepareReading(tx, scope, keys, id),
    within(scope),
  );
  if (!pending) return 0;
  const timeout = AbortSignal.timeout(READING_TIMEOUT_MS);
  try {
    const { pullRequest, memory } = await scm.readPullRequest({
      ...pending,
      memory: JSON.parse(pending.memory),
      signal: AbortSignal.any([draining, timeout]),
    });
    const read = { reading: pullRequest, memory: JSON.stringify(memory) };
    await store.write(SYSTEM, OPERATION, (tx) => applyReading(tx, scope, id, read), within(scope));
    return 0;
  } catch (error) {
    // It stays due, and is read after the next start.
    if (draining.aborted) return 0;
    const failure = toFailure(error, timeout, pending.host);
    const failed = {
      problem: failure.message,
      // An invalid answer may come from a host that is being upgraded.
      isRetriable: failure.retriable || failure.kind === "unreadable",
      retryAfterMs: failure.retryAfterMs,
    };
    await store.write(SYSTEM, OPERATION, (tx) => applyFailedReading(tx, scope, id, failed), within(scope));
    return failure.kind === "rate_limited" ? (failure.retryAfterMs ?? 0) : 0;
  }
}

function toFailure(error: unknown, timeout: AbortSignal, host: string): ScmFailure {
  if (error instanceof ScmFailure) return error;
  if (!timeout.aborted) throw error;
  return new ScmFailure("unavailable", host, `did not answer within ${READING_TIMEOUT_MS / 1000} s`);
}

/** Tracks pull requests at their hosts. */
export const pullRequestsJob: JobFactory = (context) => ({
  name: "pull_requests",
  everyMs: EVERY_MS,
  run: createPullRequestSync(context),
});
