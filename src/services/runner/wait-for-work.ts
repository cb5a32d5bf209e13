import { create } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { type LeaseWorkRequest, LeaseWorkResponseSchema } from "#gen/runner/v1/work_service_pb.js";
import { unauthenticated } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { offeredTo } from "../../domain/runner/kept-policies.ts";
import {
  isAvailable,
  isCurrentInstance,
  requireCurrentInstance,
} from "../../domain/runner/runner-heartbeat.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import { type Claimant, findClaimable, kindsFor } from "../../store/runner/claimable-work.ts";
import { findClassesOfRunner } from "../../store/runner/environment-class.ts";
import { findLocalRunnerId } from "../../store/runner/runner.ts";
import { findStoredRunner } from "../../store/runner/runner-life.ts";
import { readyWorkOf } from "../../store/runner/work.ts";
import type { Reader, Scope, WriteTransaction } from "../../store/store.ts";
import { callerOf, writeAsCaller } from "../call/call.ts";
import { createNotifier } from "../call/notifier.ts";
import { type ClaimResult, claim } from "./claim.ts";
import { recordHeartbeat } from "./heartbeat.ts";
import type { WorkServiceDependencies } from "./work-service.ts";

/** The default of LeaseWorkRequest.wait (contract). */
const DEFAULT_WAIT_MS = 20_000;

/** How often to look for work that becomes due without a change, such as the work of an expired lease. */
const POLL_INTERVAL_MS = 1_000;

/** The work that a runner asks for. */
export type WantedWork = Pick<
  LeaseWorkRequest,
  "kinds" | "environmentClassIds" | "agentsWithEnvironment" | "apiAgents" | "instanceId"
>;

/** Rolls back a claim when another runner was faster. */
class NoWorkLeft extends Error {}

/**
 * Leases work to a runner as soon as there is some. It reads before it writes, since most runners wait most of the
 * time.
 */
export async function leaseWork(deps: WorkServiceDependencies, req: LeaseWorkRequest, ctx: HandlerContext) {
  const { store, draining, now } = deps;
  const caller = callerOf(ctx);
  const known = await recordHeartbeat(deps, ctx);
  if (known) {
    requireCurrentInstance(known, req.instanceId);
    if (req.agentSlots > 0 && req.agentSlots !== known.agentSlots)
      await store.note("runner", caller.subject.id, { agent_slots: req.agentSlots });
  }
  const until = now() + (req.wait ? durationMs(req.wait) : DEFAULT_WAIT_MS);
  const topics = kindsFor(req).map((kind) => readyWorkOf(caller.organizationId, kind));
  const subscribe = (wake: () => void) => {
    const ends = topics.map((topic) => store.onChange(topic, wake));
    return () => {
      for (const end of ends) end();
    };
  };
  const notifier = createNotifier(subscribe, [draining, ctx.signal]);
  try {
    for (;;) {
      const changed = notifier.next(Math.min(POLL_INTERVAL_MS, Math.max(0, until - now())));
      ctx.signal.throwIfAborted();
      if (draining.aborted) return create(LeaseWorkResponseSchema);
      const claimant = await findClaimant(store.reader, caller, req);
      if (claimant && (await findClaimable(store.reader, claimant, now(), 1)).length > 0) {
        const response = await tryClaim(deps, req, ctx);
        if (response) return response;
      }
      if (now() >= until) return create(LeaseWorkResponseSchema);
      await changed;
    }
  } finally {
    notifier.close();
  }
}

/** Returns what the calling runner can take now; undefined while it may take nothing. */
export function findClaimant(
  db: Reader,
  caller: Caller,
  req: LeaseWorkRequest,
): Promise<Claimant | undefined> {
  return findClaimantOf(db, caller, caller.subject.id, req);
}

/** Returns what a runner can take now; undefined while it may take nothing. */
export async function findClaimantOf(
  db: Reader,
  scope: Scope,
  runnerId: string,
  { kinds, environmentClassIds: requested, agentsWithEnvironment, apiAgents, instanceId }: WantedWork,
): Promise<Claimant | undefined> {
  const [known, classes] = await Promise.all([
    findStoredRunner(db, scope, runnerId),
    findClassesOfRunner(db, scope, runnerId),
  ]);
  // The runner was deleted while it waited, together with its token.
  if (!known) throw unauthenticated();
  if (!isAvailable(known.runner) || !isCurrentInstance(known, instanceId)) return undefined;
  let runnerIds: Claimant["runnerIds"] = [runnerId];
  if (known.local) {
    if (!(await findPolicies(db, scope)).effective.allowLocalRunners) return undefined;
    runnerIds = [runnerId, await findLocalRunnerId(db, scope)];
  }
  const own = classes.map(({ id }) => id);
  const environmentClassIds = requested.length === 0 ? own : own.filter((id) => requested.includes(id));
  return {
    organizationId: scope.organizationId,
    runnerIds,
    kinds,
    agentsWithEnvironment,
    apiAgents,
    environmentClassIds,
    keeps: offeredTo(known.keptPolicies),
  };
}

/** Returns undefined when another runner was faster. */
async function tryClaim(deps: WorkServiceDependencies, req: LeaseWorkRequest, ctx: HandlerContext) {
  try {
    return await writeAsCaller(deps.store, ctx, async (tx, caller) => {
      const claimant = await findClaimant(tx.db, caller, req);
      const { works, changed } = await claimAs(deps, tx, caller, claimant, req);
      if (!changed) throw new NoWorkLeft();
      return create(LeaseWorkResponseSchema, { works });
    });
  } catch (error) {
    if (error instanceof NoWorkLeft) return undefined;
    throw error;
  }
}

/**
 * Leases available work to the calling runner, in an open transaction.
 *
 * @param claimant as found in this transaction; undefined for a runner that may take nothing
 */
export async function claimAs(
  { keys, leaseMs, pageBytes, handlerOf, onUnusableWork }: WorkServiceDependencies,
  tx: WriteTransaction,
  caller: Caller,
  claimant: Claimant | undefined,
  req: LeaseWorkRequest,
): Promise<ClaimResult> {
  if (!claimant) return { works: [], changed: false };
  const [runnerId, { instanceId }] = [caller.subject.id, req];
  const limits = { maxLeases: req.maxLeases, maxBytes: pageBytes };
  return claim(tx, caller, {
    claimant,
    runnerId,
    instanceId,
    ...limits,
    leaseMs,
    keys,
    handlerOf,
    onUnusableWork,
  });
}
