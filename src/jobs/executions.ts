import { workflowError } from "../domain/workflow/execution/workflow-error.ts";
import type { Keys } from "../keys.ts";
import { ScmFailure } from "../scm/failure.ts";
import type { SourceControl } from "../scm/source-control.ts";
import {
  expandFound,
  failExpansion,
  openSearch,
  type PendingSearch,
} from "../services/workflow/execution/execution-expand.ts";
import { type Store, SYSTEM } from "../store/store.ts";
import { findUnexpanded } from "../store/workflow/workflow-execution.ts";
import type { MakeJob } from "./job.ts";

const EVERY_MS = 1_000;

const OPERATION = "job/executions";

/** Executions looked at in one run; of those that wait for a host, most are only looked at. */
const EXECUTIONS_A_RUN = 10_000;

/**
 * Searches at the same time, and of one organization in one run: where a host
 * is slow, others wait for one turn of it and no more.
 */
const SEARCHES_AT_ONCE = 8;

/** A search reads up to eleven pages. */
const SEARCH_TIMEOUT_MS = 60_000;

/** How long a host is asked again that is unavailable or wants to be asked less, and how soon. */
const TRY_FOR_MS = 300_000;
const TRY_AGAIN_MS = 10_000;

export interface Expansion {
  readonly store: Store;
  readonly keys: Pick<Keys, "open">;
  readonly scm: Pick<SourceControl, "searchRepositories">;
  /** Milliseconds since 1970 UTC. */
  readonly now: () => number;
  /** Ends searches under way when the server drains; the next start makes them anew. */
  readonly draining: AbortSignal;
}

interface Waiting {
  readonly organizationId: string;
  readonly id: string;
  readonly startedAt: number;
}

/**
 * The job that makes the actions of executions whose repositories are searched
 * for, at the host and with the executor's token. A host that is unavailable is
 * asked again for five minutes; every other failure ends the execution.
 *
 * @returns one run of it
 */
export function createExpansion(parts: Expansion): () => Promise<void> {
  /** When an execution is looked at again; whatever is lost of it is asked for at once. */
  const notBefore = new Map<string, number>();
  return async () => {
    const found = await findUnexpanded(parts.store.reader, EXECUTIONS_A_RUN);
    for (const id of notBefore.keys()) if (!found.some((each) => each.id === id)) notBefore.delete(id);
    const due = firstOfEach(found.filter(({ id }) => (notBefore.get(id) ?? 0) <= parts.now()));
    const next = due.values();
    const failures: unknown[] = [];
    const lanes = Array.from({ length: Math.min(SEARCHES_AT_ONCE, due.length) }, async () => {
      for (const waiting of next) {
        if (parts.draining.aborted) return;
        const waitMs = await expand(parts, waiting).catch((error: unknown) => {
          failures.push(error);
          return TRY_AGAIN_MS;
        });
        if (waitMs > 0) notBefore.set(waiting.id, parts.now() + waitMs);
      }
    });
    // A run must not end before all of its lanes: the next would search beside it.
    await Promise.all(lanes);
    if (failures.length > 0) throw new AggregateError(failures, "actions were not made");
  };
}

/** The first few of each organization, in their order. */
function firstOfEach(waiting: readonly Waiting[]): Waiting[] {
  const taken = new Map<string, number>();
  return waiting.filter(({ organizationId }) => {
    const count = taken.get(organizationId) ?? 0;
    taken.set(organizationId, count + 1);
    return count < SEARCHES_AT_ONCE;
  });
}

/** @returns how long to wait before it is tried again, in milliseconds; 0 when it is settled */
async function expand({ store, keys, scm, now, draining }: Expansion, waiting: Waiting): Promise<number> {
  const { organizationId, id } = waiting;
  const scope = { organizationId };
  const search = await store.write(SYSTEM, OPERATION, (tx) => openSearch(tx, scope, keys, id));
  if (!search) return 0;
  try {
    const found = await searched(scm, search, draining);
    await store.write(SYSTEM, OPERATION, (tx) => expandFound(tx, scope, id, found));
    return 0;
  } catch (error) {
    if (draining.aborted) return TRY_AGAIN_MS;
    if (!(error instanceof ScmFailure)) throw error;
    if (error.retriable && now() - waiting.startedAt < TRY_FOR_MS) {
      return Math.max(TRY_AGAIN_MS, error.retryAfterMs ?? 0);
    }
    const failure = workflowError("repository_search_failed", error.message, { host: search.host });
    await store.write(SYSTEM, OPERATION, (tx) => failExpansion(tx, scope, id, failure));
    return 0;
  }
}

async function searched(
  scm: Expansion["scm"],
  { host, query, limit, token }: PendingSearch,
  draining: AbortSignal,
) {
  const timeout = AbortSignal.timeout(SEARCH_TIMEOUT_MS);
  try {
    const signal = AbortSignal.any([draining, timeout]);
    return await scm.searchRepositories({ host, query, limit, token, signal });
  } catch (error) {
    if (!timeout.aborted || error instanceof ScmFailure) throw error;
    throw new ScmFailure("unavailable", host, `did not search to the end in ${SEARCH_TIMEOUT_MS / 1000} s`);
  }
}

export const executionsJob: MakeJob = (context) => ({
  name: "executions",
  everyMs: EVERY_MS,
  run: createExpansion(context),
});
