import type { HandlerContext } from "@connectrpc/connect";
import type { WatchEventsRequest } from "#gen/service/v1/event_service_pb.js";
import { mayReadEvent } from "../../domain/access/event-reading.ts";
import { notFound, shuttingDown } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { matchesRequest, requireReachedEvent } from "../../domain/record/event-filter.ts";
import { findEnvironment } from "../../store/environment/environment.ts";
import {
  type EventMessage,
  findEventsAfter,
  findOldestEvent,
  toEvent,
  toStreamMessage,
} from "../../store/record/event.ts";
import type { Store } from "../../store/store.ts";
import { callerOf, streamBegunKey } from "../call/call.ts";
import { createNotifier } from "../call/notifier.ts";
import { announcesStartKey } from "../call/plain-stream.ts";
import { streamSignalOf } from "../call/revocation-monitor.ts";
import type { StreamDependencies } from "../call/stream-dependencies.ts";
import { EVENTS_PER_READ, type EventFeeds } from "./event-feed.ts";

/** Number of skipped events after which a stream sends its position (contract, WatchEventsResponse). */
const MAX_UNREPORTED_EVENTS = 100;

/**
 * Streams the events of the caller's organization that match the request and that the
 * caller may read at the time of sending. A slow client delays only its own stream.
 *
 * @throws DomainError VALUE_UNUSABLE for a sequence number that does not exist yet;
 *   NOT_FOUND for an unknown environment; UNAVAILABLE when the server drains
 */
export async function* watchEvents(
  { store, draining }: StreamDependencies,
  feeds: EventFeeds,
  req: WatchEventsRequest,
  ctx: HandlerContext,
): AsyncGenerator<EventMessage> {
  const caller = callerOf(ctx);
  const ended = streamSignalOf(ctx);
  const feed = feeds(caller);
  const notifier = createNotifier((wake) => feed.subscribe(wake), [ended, draining]);
  try {
    let after = await startPosition(store, caller, req);
    const isUntold = req.afterSequence === undefined && ctx.values.get(announcesStartKey);
    let reported = isUntold ? after - 1 : after;
    let hasCaughtUp = false;
    ctx.values.get(streamBegunKey)();
    for (;;) {
      const notified = notifier.next();
      ended.throwIfAborted();
      if (draining.aborted) throw shuttingDown();
      const { events, head, pruned } = await feed.read(after, !hasCaughtUp);
      if (after < pruned) {
        const oldest = (await findOldestEvent(store.reader, caller)) ?? head + 1;
        yield toStreamMessage(caller, pruned, oldest);
        reported = after = pruned;
        continue;
      }
      for (const event of events) {
        after = event.sequence;
        if (!matchesRequest(req, event)) continue;
        // Checked for each event: rights may change while the client receives the previous one.
        const reader = await feed.readerOf(caller);
        if (!mayReadEvent(reader.policies, reader.caller, event) && !(await reader.mayReadShared(event)))
          continue;
        yield toEvent(event);
        reported = after;
      }
      const hasAll = events.length < EVENTS_PER_READ;
      if (hasAll) after = Math.max(after, head);
      const isPositionDue =
        hasAll && !hasCaughtUp ? after > reported : after - reported >= MAX_UNREPORTED_EVENTS;
      if (isPositionDue) {
        yield toStreamMessage(caller, after);
        reported = after;
      }
      hasCaughtUp ||= hasAll;
      if (hasAll) await notified;
    }
  } finally {
    notifier.close();
  }
}

/** Returns the sequence number after which a stream begins: the requested one, or that of the newest event. */
async function startPosition(store: Store, caller: Caller, req: WatchEventsRequest): Promise<number> {
  const { scope, afterSequence } = req;
  if (scope.case === "environmentId" && !(await findEnvironment(store.reader, caller, scope.value))) {
    throw notFound("environment");
  }
  const { head } = await findEventsAfter(store.reader, caller, Number.MAX_SAFE_INTEGER, 1);
  return afterSequence === undefined ? head : requireReachedEvent(afterSequence, head);
}
