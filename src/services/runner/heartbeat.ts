import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { type HeartbeatRequest, HeartbeatResponseSchema } from "#gen/runner/v1/work_service_pb.js";
import type { Caller } from "../../domain/identity/caller.ts";
import { supportedPoliciesOf } from "../../domain/runner/kept-policies.ts";
import {
  connectedRunner,
  HEARTBEAT_INTERVAL_MS,
  type RunnerUpdate,
} from "../../domain/runner/runner-heartbeat.ts";
import {
  API_AGENTS_LEVEL,
  mayStore,
  RUNNER_ISOLATION_LEVEL,
  RUNNER_POLICIES_LEVEL,
} from "../../store/feature-level.ts";
import { type ConnectedRunner, findStoredRunner, updateRunner } from "../../store/runner/runner-life.ts";
import { type Store, type WriteTransaction, within } from "../../store/store.ts";
import { callerOf, operationOf, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { repeatableKey } from "../call/idempotency.ts";

/** The minimum interval between two writes of heartbeats that other calls imply. */
const HEARTBEAT_WRITE_INTERVAL_MS = 10_000;

type HeartbeatDependencies = Pick<ServiceDependencies, "store" | "now">;

/** Records a runner's heartbeat. The audit log gets a row only when the runner's status changes. */
export async function heartbeat(
  { store, now }: HeartbeatDependencies,
  { version, degradedReason, instanceId, isolation, apiAgents, keptPolicies }: HeartbeatRequest,
  ctx: HandlerContext,
) {
  const caller = callerOf(ctx);
  const response = create(HeartbeatResponseSchema, { nextWithin: durationFromMs(HEARTBEAT_INTERVAL_MS) });
  const known = await findStoredRunner(store.reader, caller, caller.subject.id);
  if (instanceId !== "" && known?.instanceId === instanceId) {
    await store.note("runner", caller.subject.id, { instance_seen_at: now() });
  }
  // A runner of another release that reports no policies may support fewer than before.
  const says = keptPolicies || (version !== "" && version !== known?.runner.status?.version);
  const kept = says ? supportedPoliciesOf(keptPolicies) : undefined;
  if (known && kept !== undefined && kept !== known.keptPolicies)
    await store.note("runner", caller.subject.id, { kept_policies: kept });
  const report = { version, degradedReason, isolation, apiAgents, keptPolicies: kept };
  if (!known || (!connectedRunner(known.runner, report, now()) && !ctx.values.get(repeatableKey))) {
    await touchRunner(store, caller, now());
    return response;
  }
  return writeAsCaller(store, ctx, async (tx) => {
    await updateConnectedRunner(tx, caller, report);
    return response;
  });
}

/**
 * Records any call of a runner as a heartbeat.
 *
 * @returns the runner; undefined when it was deleted
 */
export async function recordHeartbeat(
  { store, now }: HeartbeatDependencies,
  ctx: HandlerContext,
): Promise<ConnectedRunner | undefined> {
  const caller = callerOf(ctx);
  const known = await findStoredRunner(store.reader, caller, caller.subject.id);
  if (!known) return undefined;
  if (connectedRunner(known.runner, {}, now())) {
    await store.write(
      caller.subject,
      operationOf(ctx),
      (tx) => updateConnectedRunner(tx, caller, {}),
      within(caller),
    );
  } else if (now() - (known.seenAt ?? 0) >= HEARTBEAT_WRITE_INTERVAL_MS) {
    await touchRunner(store, caller, now());
  }
  return known;
}

async function updateConnectedRunner(
  tx: WriteTransaction,
  caller: Caller,
  report: RunnerUpdate,
): Promise<void> {
  const known = await findStoredRunner(tx.db, caller, caller.subject.id);
  const { isolation, apiAgents, keptPolicies, ...rest } = report;
  const stored = {
    ...rest,
    ...(isolation && mayStore(tx, RUNNER_ISOLATION_LEVEL) && { isolation }),
    ...(mayStore(tx, API_AGENTS_LEVEL) && { apiAgents }),
    ...(mayStore(tx, RUNNER_POLICIES_LEVEL) && { keptPolicies }),
  };
  const runner = known && connectedRunner(known.runner, stored, tx.now);
  if (runner) await updateRunner(tx, caller, known.runner, { ...known, runner, seenAt: tx.now });
}

function touchRunner(store: Store, { subject }: Caller, now: number): Promise<void> {
  return store.note("runner", subject.id, { seen_at: now });
}
