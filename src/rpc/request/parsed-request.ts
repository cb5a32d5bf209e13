import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { createContextKey, type Interceptor } from "@connectrpc/connect";
import type { CallRecord } from "../access/call-record.ts";
import type { RequestReading } from "./request-reading.ts";

/** Carries a request that was parsed and checked on a thread of its own; undefined for all others. */
export const parsedRequestKey = createContextKey<MessageShape<DescMessage> | undefined>(undefined, {
  description: "parsed request",
});

/** By what a large request has its turn. */
export interface Turn {
  /** Callers have theirs one after the other. */
  readonly caller: string;
  /** Aborted when nobody waits for the request any more. */
  readonly signal: AbortSignal;
}

/** Returns by what a call has its turn. */
export function turnOf({ caller }: CallRecord, signal: AbortSignal): Turn {
  return { caller: caller?.accountId || (caller?.subject.id ?? ""), signal };
}

/**
 * Parses and checks a large body without holding up other requests.
 *
 * @param bytes the whole message; given away, and not to be used afterwards
 * @throws ConnectError that says what is wrong with the body; why nobody waits
 *   any more; unavailable when the thread ended
 */
export type ParseElsewhere = (
  reading: RequestReading,
  isBinary: boolean,
  bytes: Uint8Array,
  turn: Turn,
) => Promise<MessageShape<DescMessage>>;

/** Puts a request that was parsed beforehand in the place of the empty one that the protocol layer was given. */
export const useParsedRequest: Interceptor = (next) => (req) => {
  const parsed = req.contextValues.get(parsedRequestKey);
  if (parsed === undefined || req.message === parsed) return next(req);
  return req.stream
    ? next({ ...req, message: only(parsed, req.message) })
    : next({ ...req, message: parsed });
};

/** Reads on, so that a second message is refused as ever. */
async function* only<M>(parsed: M, messages: AsyncIterable<M>): AsyncIterable<M> {
  let isFirst = true;
  for await (const message of messages) {
    yield isFirst ? parsed : message;
    isFirst = false;
  }
}
