import { create } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { type LeaseWorkRequest, LeaseWorkResponseSchema } from "#gen/runner/v1/work_service_pb.js";
import { unauthenticated } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { isAvailable } from "../../domain/runner/runner-heartbeat.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import { findClassesOfRunner } from "../../store/runner/environment-class.ts";
import { findLocalRunnerId } from "../../store/runner/runner.ts";
import { findKnownRunner } from "../../store/runner/runner-life.ts";
import { readyWorkOf } from "../../store/runner/work.ts";
import { type Claimant, findClaimable } from "../../store/runner/work-lease.ts";
import type { Reader } from "../../store/store.ts";
import { callerOf, writeAsCaller } from "../call/call.ts";
import { createNotifier } from "../call/notifier.ts";
import { recordHeartbeat } from "./runner-life.ts";
import { claim } from "./work-claim.ts";
import type { WorkServiceDependencies } from "./work-service.ts";

/** How long a runner waits for work that does not say how long (contract, LeaseWorkRequest.wait). */
const DEFAULT_WAIT_MS = 20_000;

/** Work becomes due as time passes too, such as that of a lease which ran out: it is looked for this often. */
const LOOK_EVERY_MS = 1_000;

/** Found out inside a claim: another runner was faster, and nothing is to be kept of it. */
class NothingLeft extends Error {}

/**
 * Gives a runner work, as soon as there is some for it. It looks before it
 * writes, since most runners wait most of the time.
 */
export async function leaseWork(deps: WorkServiceDependencies, req: LeaseWorkRequest, ctx: HandlerContext) {
  const { store, draining, now } = deps;
  const caller = callerOf(ctx);
  await recordHeartbeat(deps, ctx);
  const until = now() + (req.wait ? durationMs(req.wait) : DEFAULT_WAIT_MS);
  const ready = readyWorkOf(caller.organizationId);
  const bell = createNotifier((wake) => store.onChange(ready, wake), [draining, ctx.signal]);
  try {
    for (;;) {
      const rung = bell.next(Math.min(LOOK_EVERY_MS, Math.max(0, until - now())));
      ctx.signal.throwIfAborted();
      if (draining.aborted) return create(LeaseWorkResponseSchema);
      const claimant = await claimantOf(store.reader, caller, req);
      if (claimant && (await findClaimable(store.reader, claimant, now()))) {
        const answer = await tryClaim(deps, req, ctx);
        if (answer) return answer;
      }
      if (now() >= until) return create(LeaseWorkResponseSchema);
      await rung;
    }
  } finally {
    bell.close();
  }
}

/** What the runner can take now; undefined while it is given nothing. */
async function claimantOf(
  db: Reader,
  caller: Caller,
  { kinds, environmentClassIds: asked }: LeaseWorkRequest,
): Promise<Claimant | undefined> {
  const runnerId = caller.subject.id;
  const known = await findKnownRunner(db, caller, runnerId);
  // It was deleted while it waited, and its token with it.
  if (!known) throw unauthenticated();
  if (!isAvailable(known.runner)) return undefined;
  let runnerIds: Claimant["runnerIds"] = [runnerId];
  if (known.local) {
    if (!(await findPolicies(db, caller)).inForce.allowLocalRunners) return undefined;
    runnerIds = [runnerId, await findLocalRunnerId(db, caller)];
  }
  const own = (await findClassesOfRunner(db, caller, runnerId)).map(({ id }) => id);
  const environmentClassIds = asked.length === 0 ? own : own.filter((id) => asked.includes(id));
  return { organizationId: caller.organizationId, runnerIds, kinds, environmentClassIds };
}

/** Undefined when somebody else was faster. */
async function tryClaim(
  { store, keys, leaseMs, pageBytes, handlerOf, onUnusableWork }: WorkServiceDependencies,
  req: LeaseWorkRequest,
  ctx: HandlerContext,
) {
  try {
    return await writeAsCaller(store, ctx, async (tx, caller) => {
      const claimant = await claimantOf(tx.db, caller, req);
      if (!claimant) throw new NothingLeft();
      const runnerId = caller.subject.id;
      const most = { most: req.maxLeases, mostBytes: pageBytes };
      const asked = { claimant, runnerId, ...most, leaseMs, keys, handlerOf, onUnusableWork };
      const { works, changed } = await claim(tx, caller, asked);
      if (!changed) throw new NothingLeft();
      return create(LeaseWorkResponseSchema, { works });
    });
  } catch (error) {
    if (error instanceof NothingLeft) return undefined;
    throw error;
  }
}
