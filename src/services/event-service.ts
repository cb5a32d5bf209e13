import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type {
  EventService as Contract,
  ListAuditLogsRequest,
  WatchEventsRequest,
  WatchEventsResponseSchema,
} from "#gen/service/v1/event_service_pb.js";
import { DomainError, valueUnusable } from "../domain/error.ts";
import { findEventsAfter, findOldestEvent, toEvent } from "../store/event.ts";
import { streamSignalOf } from "./account-signals.ts";
import { answerAuditLogs } from "./audit-log-list.ts";
import { callerOf, streamBegunKey } from "./call.ts";
import type { ServiceDependencies } from "./dependencies.ts";
import { createBell } from "./event-bell.ts";

/** Events read at a time; it bounds the memory of a stream that its client reads slowly. */
const EVENTS_A_READ = 100;

export interface EventServiceDependencies extends ServiceDependencies {
  /** Aborted when the server begins to shut down. */
  readonly draining: AbortSignal;
}

/** The record of an organization: its audit trail and the stream of its events. */
export class EventService implements ServiceImpl<typeof Contract> {
  readonly #deps: EventServiceDependencies;

  constructor(deps: EventServiceDependencies) {
    this.#deps = deps;
  }

  listAuditLogs = (req: ListAuditLogsRequest, ctx: HandlerContext) =>
    answerAuditLogs(this.#deps, callerOf(ctx), req);

  async *watchEvents(req: WatchEventsRequest, ctx: HandlerContext) {
    const { store, draining } = this.#deps;
    const caller = callerOf(ctx);
    const ended = streamSignalOf(ctx);
    const bell = createBell(store, [ended, draining]);
    try {
      let after = await begin(this.#deps, caller, req.afterSequence);
      ctx.values.get(streamBegunKey)();
      for (;;) {
        const rung = bell.next();
        ended.throwIfAborted();
        if (draining.aborted) throw shuttingDown();
        const { events, head, pruned } = await findEventsAfter(
          store.reader,
          caller,
          after,
          req.resourceTypes,
          EVENTS_A_READ,
        );
        if (after < pruned) {
          const oldest = (await findOldestEvent(store.reader, caller)) ?? head + 1;
          yield message({ case: "historyPruned", value: { oldestSequence: BigInt(oldest) } });
          after = pruned;
          continue;
        }
        for (const event of events) {
          yield message({ case: "event", value: toEvent(event) });
          after = event.sequence;
        }
        if (events.length === EVENTS_A_READ) continue;
        // What lies between the last event and the head is of other kinds.
        after = Math.max(after, head);
        await rung;
      }
    } finally {
      bell.close();
    }
  }
}

type Answer = MessageInitShape<typeof WatchEventsResponseSchema>;

function message(kind: NonNullable<Answer["kind"]>): Answer {
  return { kind };
}

/** The number after which a stream begins: the caller's own, or that of the newest row. */
async function begin(
  { store }: EventServiceDependencies,
  caller: { organizationId: string },
  asked: bigint | undefined,
): Promise<number> {
  const { head } = await findEventsAfter(store.reader, caller, Number.MAX_SAFE_INTEGER, [], 1);
  if (asked === undefined) return head;
  if (asked > BigInt(head)) {
    throw valueUnusable(
      "afterSequence",
      "afterSequence is a number that the organization's record has not reached",
    );
  }
  return Number(asked);
}

/** What ends a stream that can be resumed. */
export function shuttingDown(): DomainError {
  return new DomainError(
    ErrorReason.UNAVAILABLE,
    "the server is shutting down: resume after the last sequence number, another instance or a restart will answer",
  );
}
