import { workflowError } from "../../domain/workflow/execution/workflow-error.ts";
import type { Keys } from "../../keys.ts";
import { ScmFailure } from "../../scm/failure.ts";
import type { SourceControl } from "../../scm/source-control.ts";
import {
  expandFromSearch,
  failUnexpandedExecution,
  type PendingSearch,
  prepareSearch,
} from "../../services/workflow/execution/execution-expand.ts";
import { type Store, SYSTEM, within } from "../../store/store.ts";
import { findUnexpandedExecutions } from "../../store/workflow/workflow-execution-list.ts";
import type { JobFactory } from "../job.ts";

const EVERY_MS = 1_000;

const OPERATION = "job/executions";

/** Maximum number of executions read per run. Most of those that wait for a host are read and then skipped. */
const EXECUTIONS_PER_RUN = 10_000;

/**
 * Maximum number of concurrent searches, and of searches of one organization per
 * run. When a host is slow, other organizations wait for at most one run.
 */
const MAX_CONCURRENT_SEARCHES = 8;

/** A search reads up to eleven pages within this time. */
const SEARCH_TIMEOUT_MS = 60_000;

/** The time for which a search is retried at a host that is unavailable or limits requests. */
const MAX_RETRY_MS = 300_000;
/** The minimum delay between two attempts. */
const RETRY_DELAY_MS = 10_000;

/** The dependencies of {@link createExpansion}. */
export interface ExpansionContext {
  readonly store: Store;
  readonly keys: Pick<Keys, "open">;
  readonly scm: Pick<SourceControl, "searchRepositories">;
  /** Milliseconds since 1970 UTC. */
  readonly now: () => number;
  /** Cancels running searches when the server drains; they start over after the next start. */
  readonly draining: AbortSignal;
}

interface WaitingExecution {
  readonly organizationId: string;
  readonly id: string;
  readonly startedAt: number;
}

/**
 * Creates the function that creates the actions of executions whose repositories
 * come from a search. It searches at the host, with the executor's token. When a host
 * is unavailable, the search is retried for five minutes; every other failure ends
 * the execution.
 *
 * @returns a function that does one run of the job
 */
export function createExpansion(parts: ExpansionContext): () => Promise<void> {
  /** The earliest time of the next attempt by execution. It is lost at a restart, and the search is then retried at once. */
  const notBefore = new Map<string, number>();
  return async () => {
    const found = await findUnexpandedExecutions(parts.store.reader, EXECUTIONS_PER_RUN);
    for (const id of notBefore.keys()) if (!found.some((each) => each.id === id)) notBefore.delete(id);
    const due = firstOfEachOrganization(found.filter(({ id }) => (notBefore.get(id) ?? 0) <= parts.now()));
    const next = due.values();
    const failures: unknown[] = [];
    const workers = Array.from({ length: Math.min(MAX_CONCURRENT_SEARCHES, due.length) }, async () => {
      for (const waiting of next) {
        if (parts.draining.aborted) return;
        const waitMs = await expandExecution(parts, waiting).catch((error: unknown) => {
          failures.push(error);
          return RETRY_DELAY_MS;
        });
        if (waitMs > 0) notBefore.set(waiting.id, parts.now() + waitMs);
      }
    });
    // A run must not end before all of its workers: the next run would search concurrently.
    await Promise.all(workers);
    if (failures.length > 0) throw new AggregateError(failures, "actions were not made");
  };
}

/** Returns the first executions of each organization, in order. */
function firstOfEachOrganization(waiting: readonly WaitingExecution[]): WaitingExecution[] {
  const counts = new Map<string, number>();
  return waiting.filter(({ organizationId }) => {
    const count = counts.get(organizationId) ?? 0;
    counts.set(organizationId, count + 1);
    return count < MAX_CONCURRENT_SEARCHES;
  });
}

/** @returns the delay before the next attempt in milliseconds; 0 when the execution is settled */
async function expandExecution(
  { store, keys, scm, now, draining }: ExpansionContext,
  waiting: WaitingExecution,
): Promise<number> {
  const { organizationId, id } = waiting;
  const scope = { organizationId };
  const search = await store.write(
    SYSTEM,
    OPERATION,
    (tx) => prepareSearch(tx, scope, keys, id),
    within(scope),
  );
  if (!search) return 0;
  try {
    const found = await searchRepositories(scm, search, draining);
    await store.write(SYSTEM, OPERATION, (tx) => expandFromSearch(tx, scope, id, found), within(scope));
    return 0;
  } catch (error) {
    if (draining.aborted) return RETRY_DELAY_MS;
    if (!(error instanceof ScmFailure)) throw error;
    if (error.retriable && now() - waiting.startedAt < MAX_RETRY_MS) {
      return Math.max(RETRY_DELAY_MS, error.retryAfterMs ?? 0);
    }
    const failure = workflowError("repository_search_failed", error.message, { host: search.host });
    await store.write(
      SYSTEM,
      OPERATION,
      (tx) => failUnexpandedExecution(tx, scope, id, failure),
      within(scope),
    );
    return 0;
  }
}

async function searchRepositories(
  scm: ExpansionContext["scm"],
  search: PendingSearch,
  draining: AbortSignal,
) {
  const timeout = AbortSignal.timeout(SEARCH_TIMEOUT_MS);
  try {
    const signal = AbortSignal.any([draining, timeout]);
    return await scm.searchRepositories({ ...search, signal });
  } catch (error) {
    if (!timeout.aborted || error instanceof ScmFailure) throw error;
    throw new ScmFailure(
      "unavailable",
      search.host,
      `did not search to the end in ${SEARCH_TIMEOUT_MS / 1000} s`,
    );
  }
}

/** Creates the actions of executions whose repositories come from a search. */
export const executionExpansionJob: JobFactory = (context) => ({
  name: "executions",
  everyMs: EVERY_MS,
  run: createExpansion(context),
});
