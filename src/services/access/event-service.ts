import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type {
  EventService as Contract,
  GetAuditLogRequest,
  ListAuditLogsRequest,
  WatchEventsRequest,
} from "#gen/service/v1/event_service_pb.js";
import { callerOf } from "../call/call.ts";
import type { StreamDependencies } from "../call/stream-dependencies.ts";
import { getAuditLog, listAuditLogs } from "../record/audit-log-list.ts";
import { createEventFeeds, type EventFeeds } from "./event-feed.ts";
import { watchEvents } from "./event-watch.ts";

/** Serves an organization's record: the audit log and the stream of events. */
export class EventService implements ServiceImpl<typeof Contract> {
  readonly #deps: StreamDependencies;

  readonly #feeds: EventFeeds;

  constructor(deps: StreamDependencies) {
    this.#deps = deps;
    this.#feeds = createEventFeeds(deps.store, deps.now);
  }

  listAuditLogs = (req: ListAuditLogsRequest, ctx: HandlerContext) =>
    listAuditLogs(this.#deps, callerOf(ctx), req);

  getAuditLog = (req: GetAuditLogRequest, ctx: HandlerContext) => getAuditLog(this.#deps, callerOf(ctx), req);

  watchEvents = (req: WatchEventsRequest, ctx: HandlerContext) =>
    watchEvents(this.#deps, this.#feeds, req, ctx);
}
