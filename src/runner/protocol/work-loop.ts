import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Work, WorkKind } from "#gen/runner/v1/work_pb.js";
import type { Log } from "../../log.ts";
import { backOffMs, pause } from "./back-off.ts";
import { classifyFailure, type WorkClient } from "./connection.ts";
import { Lease } from "./lease.ts";
import { createLeaseCalls } from "./lease-calls.ts";
import { invalidTokenError } from "./registration.ts";

export interface WorkLoopOptions {
  readonly client: WorkClient;
  /** The runner's instance; empty for none. */
  readonly instanceId: string;
  /** The kinds of work that are taken. */
  readonly kinds: readonly WorkKind[];
  /** The number of pieces of work that are executed at the same time. */
  readonly slots: number;
  /** The number of these that agents take; left out for none. */
  readonly agentSlots?: number;
  /** True if agents that are defined by the API are taken. */
  readonly apiAgents?: boolean;
  /** Executes work to its end; never rejects. */
  readonly execute: (work: Work, lease: Lease) => Promise<void>;
  readonly log: Log;
  /** Aborted when no more work is to be taken. */
  readonly draining: AbortSignal;
  /** The time that running work gets when the runner drains, in milliseconds. */
  readonly graceMs: number;
}

/** Maximum of the contract for leases in one call (LeaseWorkRequest.max_leases). */
const MAX_LEASES = 32;
/** The server answers within 20 seconds, with work or without. */
const POLL_MS = 40_000;
/** A server that answers at once without work is not asked again at once. */
const MIN_POLL_MS = 1_000;
/** Interrupted work that has not ended by then is left to the end of its lease. */
const MAX_END_MS = 15_000;

/**
 * Takes work and executes it until the runner drains: then it takes no more, lets
 * running work end within the grace period, and gives the rest back.
 *
 * @throws RunnerError when the runner's token is not valid any more; running
 *   work is given up
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
  // The slot of work that ends gets other work in the same call.
  const calls = createLeaseCalls(client, {
    request(ended) {
      // Work whose end was not taken keeps its slot.
      const maxLeases = Math.min(ended, slots - running.size - asked + ended);
      if (maxLeases <= 0 || draining.aborted) return undefined;
      return { ...accepted, maxLeases, wait: durationFromMs(0) };
    },
    take: (works) => works.forEach(start),
  });
  let failures = 0;
  /** Number of leases that a call under way may bring. */
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
      log.warn({ problem: (error as Error).message }, "no work could be asked for; trying again");
      await pause(backOffMs(failures), draining);
    }
  }
}

/** Resolves when everything has ended, or the time is over. */
async function waitUntilEnded(running: ReadonlyMap<Lease, Promise<void>>, withinMs: number): Promise<void> {
  if (running.size === 0) return;
  const over = new AbortController();
  await Promise.race([Promise.all(running.values()), pause(withinMs, over.signal)]);
  over.abort();
}
