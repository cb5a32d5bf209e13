import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { HttpResponse } from "./listener.ts";

/** An error that the listener answers itself, in the form of Connect's JSON errors. */
export interface Refusal {
  readonly status: number;
  /** Code of the protocol, such as `invalid_argument`. */
  readonly code: string;
  readonly message: string;
}

export const MALFORMED: Refusal = {
  status: 400,
  code: "invalid_argument",
  message: "malformed HTTP request",
};
export const HEADERS_TOO_LARGE: Refusal = {
  status: 431,
  code: "invalid_argument",
  message: "the request headers are too large",
};
export const HEADERS_TOO_SLOW: Refusal = {
  status: 408,
  code: "deadline_exceeded",
  message: "the request headers arrived too slowly",
};
export const BODY_TOO_SLOW: Refusal = {
  status: 408,
  code: "deadline_exceeded",
  message: "the request body arrived too slowly",
};
export const UNKNOWN_EXPECTATION: Refusal = {
  status: 417,
  code: "invalid_argument",
  message: "the expectation of the request is not supported",
};
export const NO_TUNNEL: Refusal = {
  status: 405,
  code: "invalid_argument",
  message: "the server opens no tunnels",
};

/** Answers a request of either protocol; its headers must not have been sent. */
export function refuse(res: HttpResponse, refusal: Refusal): void {
  const body = bodyOf(refusal);
  for (const name of res.getHeaderNames()) if (name.startsWith("content-")) res.removeHeader(name);
  res.statusCode = refusal.status;
  res.setHeader("content-type", "application/json");
  res.setHeader("content-length", Buffer.byteLength(body));
  res.end(body);
}

/** Answers on an HTTP/1.1 connection on which no request can be read, and ends our side of it. */
export function refuseConnection(socket: Duplex, refusal: Refusal): void {
  const body = bodyOf(refusal);
  const head = [
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}

/**
 * Makes a response deaf: what its handler still writes goes nowhere, without
 * an error, as the answer has been given by someone else.
 */
export function mute(res: HttpResponse): void {
  const self = () => res;
  const nothing = () => {};
  const taken = () => true;
  Object.assign(res, {
    writeHead: self,
    setHeader: self,
    appendHeader: self,
    removeHeader: nothing,
    addTrailers: nothing,
    flushHeaders: nothing,
    writeContinue: nothing,
    write: taken,
    end: self,
    destroy: self,
  });
  const { statusCode } = res;
  Object.defineProperty(res, "statusCode", { get: () => statusCode, set: nothing });
}

function bodyOf({ code, message }: Refusal): string {
  return JSON.stringify({ code, message });
}
