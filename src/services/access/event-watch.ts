import type { HandlerContext } from "@connectrpc/connect";
import type { WatchEventsRequest } from "#gen/service/v1/event_service_pb.js";
import { mayReadEvent } from "../../domain/access/event-reading.ts";
import { notFound, shuttingDown } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { matchesRequest, requireReached } from "../../domain/record/event-filter.ts";
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
import { streamSignalOf } from "../call/revocation-monitor.ts";
import type { StreamDependencies } from "../call/stream-dependencies.ts";
import { EVENTS_PER_READ, type EventFeeds } from "./event-feed.ts";

/** A stream that leaves out this many numbers tells how far it has come (contract, WatchEventsResponse). */
const MAX_LEFT_OUT = 100;

/**
 * Streams the events of the caller's organization that the request asks for and
 * the caller may read when they are sent. It holds one page of events, which it
 * shares with other streams, and waits for its client with each.
 *
 * @throws DomainError VALUE_UNUSABLE for a number that the record has not reached; NOT_FOUND for
 *   an environment; UNAVAILABLE when the server drains
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
  const bell = createNotifier((wake) => feed.join(wake), [ended, draining]);
  try {
    let after = await startPosition(store, caller, req);
    let told = after;
    let hasCaughtUp = false;
    ctx.values.get(streamBegunKey)();
    for (;;) {
      const rung = bell.next();
      ended.throwIfAborted();
      if (draining.aborted) throw shuttingDown();
      const { events, head, pruned } = await feed.read(after);
      if (after < pruned) {
        const oldest = (await findOldestEvent(store.reader, caller)) ?? head + 1;
        yield toStreamMessage(caller, pruned, oldest);
        told = after = pruned;
        continue;
      }
      for (const event of events) {
        after = event.sequence;
        if (!matchesRequest(req, event)) continue;
        // Asked for each: a right may have been lost while the client took the event before.
        const reader = await feed.readerOf(caller);
        if (!mayReadEvent(reader.policies, reader.caller, event)) continue;
        yield toEvent(event);
        told = after;
      }
      const hasAll = events.length < EVENTS_PER_READ;
      if (hasAll) after = Math.max(after, head);
      const isNewsToTell = hasAll && !hasCaughtUp ? after > told : after - told >= MAX_LEFT_OUT;
      if (isNewsToTell) {
        yield toStreamMessage(caller, after);
        told = after;
      }
      hasCaughtUp ||= hasAll;
      if (hasAll) await rung;
    }
  } finally {
    bell.close();
  }
}

/** Returns the number after which a stream begins: the caller's own, or that of the newest row. */
async function startPosition(store: Store, caller: Caller, req: WatchEventsRequest): Promise<number> {
  const { scope, afterSequence } = req;
  if (scope.case === "environmentId" && !(await findEnvironment(store.reader, caller, scope.value))) {
    throw notFound("environment");
  }
  const { head } = await findEventsAfter(store.reader, caller, Number.MAX_SAFE_INTEGER, 1);
  return afterSequence === undefined ? head : requireReached(afterSequence, head);
}
