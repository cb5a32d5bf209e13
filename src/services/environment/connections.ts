import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type ReportEnvironmentConnectionsRequest,
  ReportEnvironmentConnectionsResponseSchema,
} from "#gen/runner/v1/environment_work_service_pb.js";
import type { ListEnvironmentConnectionsRequest } from "#gen/service/v1/environment_service_pb.js";
import {
  connectionsToKeep,
  isRefused,
  requireTimes,
} from "../../domain/environment/environment-connection.ts";
import { notFound } from "../../domain/error.ts";
import { findEnvironment } from "../../store/environment/environment.ts";
import {
  addConnections,
  findConnectionIds,
  findConnectionPage,
  findEgress,
  recordRefusals,
} from "../../store/environment/environment-connection.ts";
import { callerOf, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { listPage } from "../call/page.ts";
import { recordHeartbeat } from "../runner/heartbeat.ts";
import { type ChangesDependencies, requireReadableContent } from "./changes-read.ts";

/** Returns one page of the connections that processes in an environment have requested. */
export async function listEnvironmentConnections(
  deps: ChangesDependencies,
  { environmentId, pagination }: ListEnvironmentConnectionsRequest,
  ctx: HandlerContext,
) {
  const caller = callerOf(ctx);
  const stored = await findEgress(deps.store.reader, caller, environmentId);
  await requireReadableContent(deps, caller, environmentId, stored?.creator);
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListEnvironmentConnections",
    parts: [{ environmentId }],
    pagination,
    find: (db, after, limit) => findConnectionPage(db, caller, { environmentId, after: after?.key, limit }),
  });
  return { ...page, connections: rows, leftOut: stored?.leftOut ?? false };
}

/**
 * Stores the connections that processes in an environment have requested, as its runner reports them. Refused
 * connections cause an event. Connections that are already stored change nothing.
 *
 * @throws DomainError NOT_FOUND; VALUE_UNUSABLE for a time out of range
 */
export async function reportEnvironmentConnections(
  deps: Pick<ServiceDependencies, "store" | "now">,
  req: ReportEnvironmentConnectionsRequest,
  ctx: HandlerContext,
) {
  requireTimes(req.connections);
  await recordHeartbeat(deps, ctx);
  return writeAsCaller(deps.store, ctx, async (tx, caller) => {
    const { environmentId } = req;
    const environment = await findEnvironment(tx.db, caller, environmentId);
    const creator = environment?.metadata?.creator;
    if (!creator || environment.metadata?.runnerId !== caller.subject.id) throw notFound("environment");
    const before = await findEgress(tx.db, caller, environmentId);
    const byId = new Map(req.connections.map((connection) => [connection.id, connection]));
    for (const id of await findConnectionIds(tx.db, caller, environmentId, [...byId.keys()])) byId.delete(id);
    const unknown = [...byId.values()];
    const { connections, counts } = connectionsToKeep(unknown, before ?? { refused: 0, allowed: 0 });
    const leftOut = before?.leftOut === true || req.leftOut || connections.length < unknown.length;
    if (connections.length > 0 || leftOut !== (before?.leftOut ?? false)) {
      const actionId = environment.spec?.workflowActionId || null;
      const after = { ...counts, creator, actionId, leftOut };
      await addConnections(tx, caller, environmentId, connections, { before, after });
      const refused = connections.filter(isRefused);
      if (refused.length > 0) recordRefusals(tx, caller, environment, refused);
    }
    return create(ReportEnvironmentConnectionsResponseSchema);
  });
}
