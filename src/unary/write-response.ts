import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { createGzip } from "node:zlib";
import { compressionNegotiate } from "@connectrpc/connect/protocol";
import { compressionGzip } from "@connectrpc/connect-node";
import type { OutputAccount } from "../rpc/access/call-record.ts";
import { type HttpResponse, isGone } from "./unary-call.ts";
import { type Body, bytesOf, endWith, joined, PIECE_BYTES, piecesOf } from "./write-pieces.ts";

const COMPRESSIONS = [compressionGzip];

/** Returns whether a client accepts gzip. @param accepted the value of its accept-encoding header */
export function acceptsGzip(accepted: string | string[] | undefined): boolean {
  if (accepted === undefined) return false;
  // The header name is left empty: it is used only in the error for an unknown compression of the request.
  return compressionNegotiate(COMPRESSIONS, null, String(accepted), "").response !== null;
}

/** Compresses a body; a large one off the main thread and without a copy of the whole. */
export function gzip(body: Body, lengthBytes: number): Promise<Uint8Array> {
  if (lengthBytes <= PIECE_BYTES) return compressionGzip.compress(oneBuffer(body));
  return buffer(Readable.from(piecesOf(body)).pipe(createGzip()));
}

function oneBuffer(body: Body): Uint8Array<ArrayBuffer> {
  const whole = joined(body);
  return typeof whole === "string" ? Buffer.from(whole) : new Uint8Array(whole);
}

/**
 * Sends a response together with others of this turn of the event loop.
 *
 * @param setHead sets the status and the headers; not called when the client has
 *   disconnected
 * @param output counts the body until the client has received it
 */
export async function writeResponse(
  res: HttpResponse,
  setHead: (lengthBytes: number) => void,
  body: Body,
  output: OutputAccount | undefined,
): Promise<void> {
  const lengthBytes = bytesOf(body);
  output?.hold(lengthBytes);
  await endOfTurn();
  if (isGone(res)) return;
  setHead(lengthBytes);
  await endWith(res, body, lengthBytes, output);
}

const waiting: (() => void)[] = [];

/**
 * Resolves when all requests that arrived together have been read. Sending their
 * responses together afterwards costs the server and a machine with many clients
 * less than sending them in between: measured with 16 connections, this saves a
 * quarter of the processor time of a GetProject. On an idle server it resolves at
 * once.
 */
function endOfTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(release);
  });
}

function release(): void {
  for (const resolve of waiting.splice(0)) resolve();
}
