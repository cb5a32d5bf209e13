import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { ConnectError } from "@connectrpc/connect";
import { errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { writeConnectError } from "../../rpc/error/error.ts";
import { JSON_OPTIONS } from "../../rpc/request/json-options.ts";
import type { HttpResponse } from "../connection/listener.ts";

/** An error that the listener sends itself, in the form of Connect's JSON errors. */
export interface RejectedRequest {
  readonly status: number;
  readonly error: ConnectError;
  /** The allowed methods, for the status 405. */
  readonly allow?: string;
}

export const MALFORMED: RejectedRequest = {
  status: 400,
  error: writeConnectError(ErrorReason.BODY_MALFORMED, "malformed HTTP request"),
};
export const HEADERS_TOO_SLOW: RejectedRequest = {
  status: 408,
  error: writeConnectError(ErrorReason.DEADLINE_EXCEEDED, "the request headers arrived too slowly"),
};
export const BODY_TOO_SLOW: RejectedRequest = {
  status: 408,
  error: writeConnectError(ErrorReason.DEADLINE_EXCEEDED, "the request body arrived too slowly"),
};
export const UNKNOWN_EXPECTATION: RejectedRequest = {
  status: 417,
  error: writeConnectError(
    ErrorReason.TRANSPORT_UNSUPPORTED,
    "the expectation of the request is not supported",
    {
      allowed: "100-continue",
    },
  ),
};
export const UNKNOWN_CODING: RejectedRequest = {
  status: 501,
  error: writeConnectError(
    ErrorReason.TRANSPORT_UNSUPPORTED,
    "the transfer coding of the request is not supported: send the body chunked, and compressed only by Content-Encoding",
    { allowed: "chunked" },
  ),
};
export const NO_TUNNEL: RejectedRequest = {
  status: 405,
  error: writeConnectError(ErrorReason.TRANSPORT_UNSUPPORTED, "the server opens no tunnels", {
    allowed: "POST",
  }),
  allow: "POST",
};

/** @param name a header of which a request may have only one */
export function headerRepeated(name: string): RejectedRequest {
  const message = `malformed HTTP request: it has more than one header ${name}`;
  return { status: 400, error: writeConnectError(ErrorReason.BODY_MALFORMED, message) };
}

export function headersTooLarge(limitBytes: number): RejectedRequest {
  const metadata = { limit_bytes: String(limitBytes) };
  return {
    status: 431,
    error: writeConnectError(ErrorReason.BODY_TOO_LARGE, "the request headers are too large", metadata),
  };
}

/** Rejects a request of either protocol; its headers must not have been sent. */
export function reject(res: HttpResponse, refusal: RejectedRequest): void {
  const body = bodyOf(refusal);
  for (const name of res.getHeaderNames()) if (name.startsWith("content-")) res.removeHeader(name);
  res.statusCode = refusal.status;
  res.setHeader("content-type", "application/json");
  res.setHeader("content-length", body.length);
  if (refusal.allow) res.setHeader("allow", refusal.allow);
  res.end(body);
}

/** Sends an error on an HTTP/1.1 connection whose request cannot be read, and ends the server's side of it. */
export function rejectConnection(socket: Duplex, refusal: RejectedRequest): void {
  const body = bodyOf(refusal);
  const head = [
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`,
    "Content-Type: application/json",
    `Content-Length: ${body.length}`,
    "Connection: close",
    ...(refusal.allow ? [`Allow: ${refusal.allow}`] : []),
  ];
  socket.end(Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), body]));
}

function bodyOf({ error }: RejectedRequest): Uint8Array {
  return errorToJsonBytes(error, JSON_OPTIONS);
}
