import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type {
  EventService as Contract,
  GetAuditLogRequest,
  ListAuditLogsRequest,
  WatchEventsRequest,
} from "#gen/service/v1/event_service_pb.js";
import { DomainError } from "../../domain/error.ts";
import { callerOf } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { getAuditLog, listAuditLogs } from "../record/audit-log-list.ts";
import { createEventFeeds, type EventFeeds } from "./event-feed.ts";
import { watchEvents } from "./event-watch.ts";

export interface EventServiceDependencies extends ServiceDependencies {
  /** Aborted when the server begins to shut down. */
  readonly draining: AbortSignal;
}

/** The record of an organization: its audit trail and the stream of its events. */
export class EventService implements ServiceImpl<typeof Contract> {
  readonly #deps: EventServiceDependencies;

  readonly #feeds: EventFeeds;

  constructor(deps: EventServiceDependencies) {
    this.#deps = deps;
    this.#feeds = createEventFeeds(deps.store, deps.now);
  }

  listAuditLogs = (req: ListAuditLogsRequest, ctx: HandlerContext) =>
    listAuditLogs(this.#deps, callerOf(ctx), req);

  getAuditLog = (req: GetAuditLogRequest, ctx: HandlerContext) => getAuditLog(this.#deps, callerOf(ctx), req);

  watchEvents = (req: WatchEventsRequest, ctx: HandlerContext) =>
    watchEvents(this.#deps, this.#feeds, req, ctx);
}

/** What ends a stream that can be resumed. */
export function shuttingDown(): DomainError {
  return new DomainError(
    ErrorReason.UNAVAILABLE,
    "the server is shutting down: resume after the last sequence number, another instance or a restart will answer",
  );
}
