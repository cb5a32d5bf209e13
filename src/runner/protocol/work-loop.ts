import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Work, WorkKind } from "#gen/runner/v1/work_pb.js";
import type { Log } from "../../log.ts";
import { backOffMs, pause } from "./back-off.ts";
import { classifyFailure, type WorkClient } from "./connection.ts";
import { proxyText } from "./foreign-server.ts";
import { Lease } from "./lease.ts";
import { createLeaseCalls } from "./lease-calls.ts";
import { invalidTokenError } from "./registration.ts";

export interface WorkLoopOptions {
  readonly client: WorkClient;
  /** The id of the runner's instance; empty for none. */
  readonly instanceId: string;
  /** The kinds of work to lease. */
  readonly kinds: readonly WorkKind[];
  /** The maximum number of concurrent pieces of work. */
  readonly slots: number;
  /** The maximum number of these that may be agents; none when absent. */
  readonly agentSlots?: number;
  /** True to lease agents defined through the API. */
  readonly apiAgents?: boolean;
  /** Executes work to its end; never rejects. */
  readonly execute: (work: Work, lease: Lease) => Promise<void>;
  readonly log: Log;
  /** Aborted when the loop must lease no more work. */
  readonly draining: AbortSignal;
  /** The grace period for running work when the runner drains, in milliseconds. */
  readonly graceMs: number;
}

/** The contract's maximum for leases in one call (LeaseWorkRequest.max_leases). */
const MAX_LEASES = 32;
/** Timeout of a poll: the server answers within 20 seconds, with or without work. */
const POLL_MS = 40_000;
/** Minimum interval between polls, for a server that answers at once without work. */
const MIN_POLL_MS = 1_000;
/** Maximum wait for interrupted work; after that, its lease is left to expire. */
const MAX_END_MS = 15_000;

/**
 * Leases and executes work until the runner drains. Then leases no more, lets running work end within the grace
 * period, and releases the rest.
 *
 * @throws RunnerError when the runner's token is no longer valid; abandons running work
 */
export async function poll(options: WorkLoopOptions): Promise<void> {
  const running = new Map<Lease, Promise<void>>();
  try {
    await fillSlots(options, running);
    await waitUntilEnded(running, options.graceMs);
  } finally {
    for (const lease of running.keys()) lease.interrupt("drain");
    await waitUntilEnded(running, MAX_END_MS);
  }
}

async function fillSlots(
  {
    client,
    instanceId,
    kinds,
    slots,
    agentSlots = 0,
    apiAgents = false,
    execute,
    log,
    draining,
  }: WorkLoopOptions,
  running: Map<Lease, Promise<void>>,
): Promise<void> {
  let changed = Promise.withResolvers<void>();
  const change = () => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  draining.addEventListener("abort", change);
  const start = (work: Work) => {
    const lease = new Lease(calls, work);
    const execution = execute(work, lease).then(() => {
      running.delete(lease);
      change();
    });
    running.set(lease, execution);
  };
  const accepted = { kinds: [...kinds], agentsWithEnvironment: true, instanceId, agentSlots, apiAgents };
  // A call that finishes work also leases new work for its slot.
  const calls = createLeaseCalls(client, {
    request(ended) {
      // Work whose result was not accepted keeps its slot.
      const maxLeases = Math.min(ended, slots - running.size - asked + ended);
      if (maxLeases <= 0 || draining.aborted) return undefined;
      return { ...accepted, maxLeases, wait: durationFromMs(0) };
    },
    take: (works) => works.forEach(start),
  });
  let failures = 0;
  /** Number of leases that the call in flight may return. */
  let asked = 0;
  while (!draining.aborted) {
    if (running.size >= slots) {
      await changed.promise;
      continue;
    }
    const askedAt = performance.now();
    try {
      asked = Math.min(slots - running.size, MAX_LEASES);
      const request = { ...accepted, maxLeases: asked };
      const { works } = await client.leaseWork(request, { signal: draining, timeoutMs: POLL_MS });
      asked = 0;
      failures = 0;
      works.forEach(start);
      const tookMs = performance.now() - askedAt;
      if (works.length === 0 && tookMs < MIN_POLL_MS) await pause(MIN_POLL_MS, draining);
    } catch (error) {
      asked = 0;
      if (draining.aborted) return;
      if (classifyFailure(error) === "unauthenticated") throw invalidTokenError();
      failures++;
      log.warn(
        { problem: proxyText(error) ?? (error as Error).message },
        "no work could be asked for; trying again",
      );
      await pause(backOffMs(failures), draining);
    }
  }
}

/** Resolves when all work has ended, or the time is over. */
async function waitUntilEnded(running: ReadonlyMap<Lease, Promise<void>>, withinMs: number): Promise<void> {
  if (running.size === 0) return;
  const over = new AbortController();
  await Promise.race([Promise.all(running.values()), pause(withinMs, over.signal)]);
  over.abort();
}
