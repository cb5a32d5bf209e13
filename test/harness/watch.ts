import type { MessageInitShape } from "@bufbuild/protobuf";
import { ConnectError, createClient, type Transport } from "@connectrpc/connect";
import {
  EventService,
  type WatchEventsRequestSchema,
  type WatchEventsResponse,
} from "#gen/service/v1/event_service_pb.js";

/** An open stream of events, read in the background. */
export interface Watch {
  /** Resolves when the server has said that the stream has begun. */
  readonly begun: Promise<void>;
  /** What has come so far. */
  readonly messages: readonly WatchEventsResponse[];
  /** Resolves with the messages once there are this many, or when the stream is over. */
  until(count: number): Promise<readonly WatchEventsResponse[]>;
  /** Resolves with the error that ended the stream. */
  readonly ended: Promise<ConnectError>;
  /** Breaks the stream off. */
  leave(): void;
}

export function watch(
  transport: Transport,
  token: string,
  request: MessageInitShape<typeof WatchEventsRequestSchema> = {},
): Watch {
  const leaving = new AbortController();
  const begun = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<ConnectError>();
  const messages: WatchEventsResponse[] = [];
  let isOver = false;
  let look = () => {};
  const read = async () => {
    const stream = createClient(EventService, transport).watchEvents(request, {
      headers: { authorization: `Bearer ${token}` },
      signal: leaving.signal,
      onHeader: () => begun.resolve(),
    });
    for await (const message of stream) {
      messages.push(message);
      look();
    }
    throw new ConnectError("the stream ended without an error");
  };
  read().catch((thrown) => {
    isOver = true;
    ended.resolve(ConnectError.from(thrown));
    look();
  });
  return {
    begun: begun.promise,
    messages,
    ended: ended.promise,
    until: (count) =>
      new Promise((resolve) => {
        look = () => {
          if (isOver || messages.length >= count) resolve(messages);
        };
        look();
      }),
    leave: () => leaving.abort(),
  };
}

/** Sequence numbers of the events among messages. */
export function sequences(messages: readonly WatchEventsResponse[]): number[] {
  return messages.flatMap(({ kind }) => (kind.case === "event" ? [Number(kind.value.sequence)] : []));
}
