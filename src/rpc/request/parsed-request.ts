import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { createContextKey, type Interceptor } from "@connectrpc/connect";
import type { CallRecord } from "../access/call-record.ts";
import type { RequestReading } from "./request-reading.ts";

/**
 * The context key of a request that was parsed and checked on a separate thread;
 * undefined for all others.
 */
export const parsedRequestKey = createContextKey<MessageShape<DescMessage> | undefined>(undefined, {
  description: "parsed request",
});

/** The data that decide a large request's turn. */
export interface Turn {
  /** The caller; callers have their turns one after the other. */
  readonly caller: string;
  /** Aborted when nobody waits for the request any more. */
  readonly signal: AbortSignal;
}

/** Returns the turn of a call. */
export function turnOf({ caller }: CallRecord, signal: AbortSignal): Turn {
  return { caller: caller?.accountId || (caller?.subject.id ?? ""), signal };
}

/**
 * Parses and checks a large body without delaying other requests.
 *
 * @param bytes the whole message; not to be used afterwards
 * @throws ConnectError for an invalid body; the reason of the turn's signal;
 *   unavailable when the thread ended
 */
export type ParseElsewhere = (
  reading: RequestReading,
  isBinary: boolean,
  bytes: Uint8Array,
  turn: Turn,
) => Promise<MessageShape<DescMessage>>;

/** Replaces the empty request that the protocol layer was given with the one that was parsed before. */
export const useParsedRequest: Interceptor = (next) => (req) => {
  const parsed = req.contextValues.get(parsedRequestKey);
  if (parsed === undefined || req.message === parsed) return next(req);
  return req.stream
    ? next({ ...req, message: only(parsed, req.message) })
    : next({ ...req, message: parsed });
};

/** Reads on, so that a second message is refused as usual. */
async function* only<M>(parsed: M, messages: AsyncIterable<M>): AsyncIterable<M> {
  let isFirst = true;
  for await (const message of messages) {
    yield isFirst ? parsed : message;
    isFirst = false;
  }
}
