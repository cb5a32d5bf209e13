import type { OutputAccount } from "../rpc/access/call-record.ts";
import { type HttpResponse, isGone } from "./unary-call.ts";

/**
 * Number of bytes that are written at once. A larger body is written piece by
 * piece, at the pace of its client: other requests are handled between two pieces,
 * and at most one piece is copied for a client that does not read.
 */
export const PIECE_BYTES = 131_072;

/** A UTF-16 code unit takes at most three bytes in UTF-8. */
const PIECE_UNITS = Math.floor(PIECE_BYTES / 3);

/** A body, or the consecutive texts that it consists of. */
export type Body = string | Uint8Array | readonly string[];

export function bytesOf(body: Body): number {
  if (typeof body === "string") return Buffer.byteLength(body);
  return body instanceof Uint8Array
    ? body.length
    : body.reduce((bytes, text) => bytes + Buffer.byteLength(text), 0);
}

/**
 * Writes a body that the account already counts, and ends the response. Stops when
 * the client disconnects.
 */
export async function endWith(
  res: HttpResponse,
  body: Body,
  lengthBytes: number,
  output: OutputAccount | undefined,
): Promise<void> {
  if (lengthBytes <= PIECE_BYTES) res.end(joined(body));
  else if (await writePieces(res, piecesOf(body), output)) res.end();
}

/**
 * Writes pieces that the account already counts, each after the client has received
 * the previous one.
 *
 * @returns false when the client has disconnected
 */
export async function writePieces(
  res: HttpResponse,
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  output: OutputAccount | undefined,
): Promise<boolean> {
  for await (const piece of pieces) {
    if (isGone(res) || res.writableEnded) return false;
    if (!write(res, piece)) await drained(res);
    output?.take(piece.length);
  }
  return !isGone(res);
}

/** Yields a body in pieces of bytes, each created on demand. */
export function* piecesOf(body: Body): Generator<Uint8Array> {
  if (body instanceof Uint8Array) {
    for (let start = 0; start < body.length; start += PIECE_BYTES) {
      yield body.subarray(start, start + PIECE_BYTES);
    }
    return;
  }
  let rest = "";
  for (const text of typeof body === "string" ? [body] : body) {
    rest += text;
    let start = 0;
    while (rest.length - start >= PIECE_UNITS) {
      const end = start + PIECE_UNITS;
      // The two halves of a surrogate pair stay together.
      const whole = isFirstHalf(rest.charCodeAt(end - 1)) ? end - 1 : end;
      yield Buffer.from(rest.slice(start, whole));
      start = whole;
    }
    rest = rest.slice(start);
  }
  if (rest !== "") yield Buffer.from(rest);
}

function isFirstHalf(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

/** Returns a body in one piece. */
export function joined(body: Body): string | Uint8Array {
  return typeof body === "string" || body instanceof Uint8Array ? body : body.join("");
}

/** Writes a chunk: the two response classes have the same method under different types. */
function write(res: HttpResponse, chunk: Uint8Array): boolean {
  return (res.write as (chunk: Uint8Array) => boolean).call(res, chunk);
}

function drained(res: HttpResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      res.off("drain", done);
      res.off("close", done);
      resolve();
    };
    res.on("drain", done);
    res.on("close", done);
  });
}
