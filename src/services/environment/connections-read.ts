import type { HandlerContext } from "@connectrpc/connect";
import type { ListEnvironmentConnectionsRequest } from "#gen/service/v1/environment_service_pb.js";
import { findConnectionPage, findEgress } from "../../store/environment/environment-connection.ts";
import { callerOf } from "../call/call.ts";
import { listPage } from "../call/page.ts";
import { type ChangesDependencies, requireReadableContent } from "./changes-read.ts";

/** Returns one page of the connections that work in an environment has asked for. */
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
