import type { MessageInitShape } from "@bufbuild/protobuf";
import { createClient, type Transport } from "@connectrpc/connect";
import { ResourceOperation } from "#gen/service/v1/event_pb.js";
import {
  EventService,
  type WatchEventsRequestSchema,
  type WatchEventsResponse,
} from "#gen/service/v1/event_service_pb.js";
import { readStream, type StreamReader } from "./stream-reader.ts";

/** An open stream of events. */
export type Watch = StreamReader<WatchEventsResponse>;

export function watch(
  transport: Transport,
  token: string,
  request: MessageInitShape<typeof WatchEventsRequestSchema> = {},
): Watch {
  return readStream(token, (options) => createClient(EventService, transport).watchEvents(request, options));
}

/** Returns the sequence numbers of the events among messages, without those about the stream itself. */
export function sequences(messages: readonly WatchEventsResponse[]): number[] {
  const events = messages.filter(({ operation }) => operation !== ResourceOperation.UNSPECIFIED);
  return events.map(({ sequence }) => Number(sequence));
}
