import type { OutputAccount } from "../rpc/access/call-record.ts";
import { type HttpResponse, isGone } from "./unary-call.ts";

/**
 * Number of bytes that are written at once. A larger body goes piece by piece, at
 * the pace of its client: between two pieces others are answered, and no more
 * than one piece is copied for a client that does not read.
 */
export const PIECE_BYTES = 131_072;

/** A unit of UTF-16 is three bytes of UTF-8 at most. */
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
 * Writes a body, which the account holds already, and ends the response. A client
 * that goes away ends the writing.
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
 * Writes pieces that the account holds already, each when the client has received
 * the one before.
 *
 * @returns false when the client has gone
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

/** Yields a body in pieces of bytes, each created when it is asked for. */
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
      // Both halves of a character stay together.
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
