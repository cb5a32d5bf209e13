import { ConnectError } from "@connectrpc/connect";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import {
  codeToHttpStatus,
  endStreamFlag,
  endStreamFromJson,
  endStreamToJson,
  errorFromJsonBytes,
  errorToJsonBytes,
} from "@connectrpc/connect/protocol-connect";
import { findTrailerError, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerParse, trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import type { CallRecord } from "./call-record.ts";
import { hasReason, withDetail } from "./error.ts";
import { JSON_OPTIONS } from "./json-options.ts";

/**
 * Errors that the protocol layer raises before any interceptor runs (a body
 * that does not parse, is too large or uses an unknown compression) come out of
 * it finished. This gives them their place in the catalogue, corrects the ones
 * that blame the server for the caller's bytes, and tells the record.
 */
export function completeError(res: UniversalServerResponse, record: CallRecord): UniversalServerResponse {
  if (!res.body) return res;
  const contentType = res.header?.get("content-type") ?? "";
  if (contentType.startsWith("application/grpc-web")) {
    return { ...res, body: lastEnvelope(res.body, trailerFlag, (data) => grpcWebTrailer(data, record)) };
  }
  if (contentType.startsWith("application/grpc")) {
    return { ...res, body: thenTrailer(res.body, res.trailer, record) };
  }
  if (contentType.startsWith("application/connect+")) {
    return { ...res, body: lastEnvelope(res.body, endStreamFlag, (data) => endStream(data, record)) };
  }
  return res;
}

/** The same for a unary answer of the Connect protocol, whose error is its body and status. */
export function completeUnaryError(
  status: number,
  header: Headers,
  body: Uint8Array,
  record: CallRecord,
): { status: number; body: Uint8Array } {
  if (status === 200 || header.has("content-encoding")) return { status, body };
  const error = errorFromJsonBytes(body, undefined, new ConnectError("unreadable error"));
  const complete = completed(error, record);
  if (!complete) return { status, body };
  return { status: codeToHttpStatus(complete.code), body: errorToJsonBytes(complete, JSON_OPTIONS) };
}

/** The error to send instead; undefined when it already says its reason. */
function completed(error: ConnectError, record: CallRecord): ConnectError | undefined {
  const complete = hasReason(error) ? undefined : withDetail(error, record);
  record.code = (complete ?? error).code;
  return complete;
}

async function* thenTrailer(
  body: AsyncIterable<Uint8Array>,
  trailer: Headers | undefined,
  record: CallRecord,
) {
  yield* body;
  if (trailer) completeTrailer(trailer, record);
}

function completeTrailer(trailer: Headers, record: CallRecord): void {
  const error = findTrailerError(trailer);
  const complete = error && completed(error, record);
  if (complete) setTrailerStatus(trailer, complete);
}

function grpcWebTrailer(data: Uint8Array, record: CallRecord): Uint8Array {
  const trailer = trailerParse(data);
  completeTrailer(trailer, record);
  return trailerSerialize(trailer);
}

function endStream(data: Uint8Array, record: CallRecord): Uint8Array {
  const end = endStreamFromJson(data);
  const complete = end.error && completed(end.error, record);
  return complete
    ? new TextEncoder().encode(JSON.stringify(endStreamToJson(end.metadata, complete, JSON_OPTIONS)))
    : data;
}

/** Rewrites the envelope that ends a stream; each chunk of the protocol layer is whole envelopes. */
async function* lastEnvelope(
  body: AsyncIterable<Uint8Array>,
  flag: number,
  rewrite: (data: Uint8Array) => Uint8Array,
): AsyncIterable<Uint8Array> {
  for await (const chunk of body) {
    if (chunk[0] !== flag) {
      yield chunk;
      continue;
    }
    const data = rewrite(chunk.subarray(5));
    const envelope = Buffer.alloc(5 + data.length);
    envelope[0] = flag;
    envelope.writeUInt32BE(data.length, 1);
    envelope.set(data, 5);
    yield envelope;
  }
}
