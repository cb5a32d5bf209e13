import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { type HeartbeatRequest, HeartbeatResponseSchema } from "#gen/runner/v1/work_service_pb.js";
import type { Caller } from "../../domain/identity/caller.ts";
import {
  connectedRunner,
  HEARTBEAT_INTERVAL_MS,
  type RunnerUpdate,
} from "../../domain/runner/runner-heartbeat.ts";
import { findKnownRunner, type KnownRunner, updateRunner } from "../../store/runner/runner-life.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";
import { callerOf, operationOf, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { repeatableKey } from "../call/idempotency.ts";

/** Signs of life are written down at most this often, save those that a runner gives for their own sake. */
const SIGN_EVERY_MS = 10_000;

type LifeDependencies = Pick<ServiceDependencies, "store" | "now">;

/** Answers a sign of life; the record gets a row only where it changes what is told of the runner. */
export async function heartbeat(
  { store, now }: LifeDependencies,
  { version, degradedReason }: HeartbeatRequest,
  ctx: HandlerContext,
) {
  const caller = callerOf(ctx);
  const news = { version, degradedReason };
  const answer = create(HeartbeatResponseSchema, { nextWithin: durationFromMs(HEARTBEAT_INTERVAL_MS) });
  const known = await findKnownRunner(store.reader, caller, caller.subject.id);
  if (!known || (!connectedRunner(known.runner, news, now()) && !ctx.values.get(repeatableKey))) {
    await recordSignOfLife(store, caller, now());
    return answer;
  }
  return writeAsCaller(store, ctx, async (tx) => {
    await updateHeard(tx, caller, news);
    return answer;
  });
}

/**
 * Takes any call of a runner as a sign of life.
 *
 * @returns the runner as it is known; undefined when it is no more
 */
export async function recordHeartbeat(
  { store, now }: LifeDependencies,
  ctx: HandlerContext,
): Promise<KnownRunner | undefined> {
  const caller = callerOf(ctx);
  const known = await findKnownRunner(store.reader, caller, caller.subject.id);
  if (!known) return undefined;
  if (connectedRunner(known.runner, {}, now())) {
    await store.write(caller.subject, operationOf(ctx), (tx) => updateHeard(tx, caller, {}));
  } else if (now() - (known.seenAt ?? 0) >= SIGN_EVERY_MS) {
    await recordSignOfLife(store, caller, now());
  }
  return known;
}

async function updateHeard(tx: WriteTransaction, caller: Caller, news: RunnerUpdate): Promise<void> {
  const known = await findKnownRunner(tx.db, caller, caller.subject.id);
  const runner = known && connectedRunner(known.runner, news, tx.now);
  if (runner) await updateRunner(tx, caller, known.runner, { ...known, runner, seenAt: tx.now });
}

function recordSignOfLife(store: Store, { subject }: Caller, now: number): Promise<void> {
  return store.note("runner", subject.id, { seen_at: now });
}
