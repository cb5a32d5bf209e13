import type { MessageInitShape } from "@bufbuild/protobuf";
import { createClient, type Transport } from "@connectrpc/connect";
import {
  EventService,
  type WatchEventsRequestSchema,
  type WatchEventsResponse,
} from "#gen/service/v1/event_service_pb.js";
import { type Reading, readStream } from "./reading.ts";

/** An open stream of events. */
export type Watch = Reading<WatchEventsResponse>;

export function watch(
  transport: Transport,
  token: string,
  request: MessageInitShape<typeof WatchEventsRequestSchema> = {},
): Watch {
  return readStream(token, (options) => createClient(EventService, transport).watchEvents(request, options));
}

/** Sequence numbers of the events among messages. */
export function sequences(messages: readonly WatchEventsResponse[]): number[] {
  return messages.flatMap(({ kind }) => (kind.case === "event" ? [Number(kind.value.sequence)] : []));
}
