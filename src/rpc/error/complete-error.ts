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
import { compressionGzip } from "@connectrpc/connect-node";
import type { CallRecord } from "../access/call-record.ts";
import { ENVELOPE_BYTES, enveloped } from "../request/envelope.ts";
import { JSON_OPTIONS } from "../request/json-options.ts";
import { addDetail, hasReason, type ReportFault } from "./error.ts";

/** The body to decompress is the server's own response, so it needs no limit. */
const ERROR_LIMIT_BYTES = 0xffffffff;

/**
 * Completes the errors that the protocol layer raises around the interceptors (a
 * body that does not parse, is too large or uses an unknown compression, a
 * response that cannot be written): gives them their place in the catalogue,
 * corrects those that blame the server for the caller's bytes, reports those that
 * are the server's fault, and updates the record.
 */
export function completeError(
  res: UniversalServerResponse,
  record: CallRecord,
  report: ReportFault,
): UniversalServerResponse {
  if (!res.body) return res;
  const complete: Complete = (error) => completed(error, record, report);
  const contentType = res.header?.get("content-type") ?? "";
  if (contentType.startsWith("application/grpc-web")) {
    return { ...res, body: lastEnvelope(res.body, trailerFlag, (data) => grpcWebTrailer(data, complete)) };
  }
  if (contentType.startsWith("application/grpc")) {
    return { ...res, body: thenTrailer(res.body, res.trailer, complete) };
  }
  if (contentType.startsWith("application/connect+")) {
    return { ...res, body: lastEnvelope(res.body, endStreamFlag, (data) => endStream(data, complete)) };
  }
  return res;
}

/**
 * Completes a unary response of the Connect protocol, whose error is its body and
 * status.
 *
 * @param header changed in place when the error is: the new body is not
 *   compressed
 */
export async function completeUnaryError(
  status: number,
  header: Headers,
  body: Uint8Array,
  record: CallRecord,
  report: ReportFault,
): Promise<{ status: number; body: Uint8Array }> {
  if (status === 200) return { status, body };
  const text = header.has("content-encoding")
    ? await compressionGzip.decompress(body, ERROR_LIMIT_BYTES)
    : body;
  const error = errorFromJsonBytes(text, undefined, new ConnectError("unreadable error"));
  const complete = completed(error, record, report);
  if (!complete) return { status, body };
  header.delete("content-encoding");
  return { status: codeToHttpStatus(complete.code), body: errorToJsonBytes(complete, JSON_OPTIONS) };
}

/** Returns the error to send instead; undefined when it already has a reason. */
type Complete = (error: ConnectError) => ConnectError | undefined;

function completed(error: ConnectError, record: CallRecord, report: ReportFault): ConnectError | undefined {
  const complete = hasReason(error) ? undefined : addDetail(error, record, report);
  record.code = (complete ?? error).code;
  return complete;
}

async function* thenTrailer(
  body: AsyncIterable<Uint8Array>,
  trailer: Headers | undefined,
  complete: Complete,
) {
  yield* body;
  if (trailer) completeTrailer(trailer, complete);
}

function completeTrailer(trailer: Headers, complete: Complete): void {
  const error = findTrailerError(trailer);
  const replacement = error && complete(error);
  if (replacement) setTrailerStatus(trailer, replacement);
}

function grpcWebTrailer(data: Uint8Array, complete: Complete): Uint8Array {
  const trailer = trailerParse(data);
  completeTrailer(trailer, complete);
  return trailerSerialize(trailer);
}

function endStream(data: Uint8Array, complete: Complete): Uint8Array {
  const end = endStreamFromJson(data);
  const instead = end.error && complete(end.error);
  return instead
    ? new TextEncoder().encode(JSON.stringify(endStreamToJson(end.metadata, instead, JSON_OPTIONS)))
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
    yield enveloped(rewrite(chunk.subarray(ENVELOPE_BYTES)), flag);
  }
}
