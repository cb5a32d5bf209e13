import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { type BeginInstanceRequest, BeginInstanceResponseSchema } from "#gen/runner/v1/work_service_pb.js";
import { unauthenticated } from "../../domain/error.ts";
import { requireNoOtherInstance } from "../../domain/runner/runner-heartbeat.ts";
import { beginRunnerInstance, findStoredRunner } from "../../store/runner/runner-life.ts";
import { expireLeases } from "../../store/runner/work-lease.ts";
import { writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";

/**
 * Begins an instance of a runner. The leases that it held before expire now: the job that ends expired leases gives
 * their work back within a second.
 */
export function beginInstance(
  { store }: Pick<ServiceDependencies, "store">,
  { instanceId }: BeginInstanceRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const runnerId = caller.subject.id;
    const known = await findStoredRunner(tx.db, caller, runnerId);
    // It was deleted meanwhile, and its token with it.
    if (!known) throw unauthenticated();
    requireNoOtherInstance(known, instanceId, tx.now);
    await beginRunnerInstance(tx, caller, runnerId, instanceId);
    const lostLeases = await expireLeases(tx, caller, runnerId, instanceId);
    return create(BeginInstanceResponseSchema, { lostLeases });
  });
}
