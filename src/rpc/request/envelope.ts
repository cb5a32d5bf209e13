import { Code, ConnectError } from "@connectrpc/connect";

/** Length of what precedes each message of gRPC, gRPC-Web and Connect's streams: a byte of flags, and four of its length. */
export const ENVELOPE_BYTES = 5;

/** The flag of a message that is compressed. */
export const COMPRESSED_FLAG = 1;

/** Returns the bytes that precede a message. */
export function envelopeHead(lengthBytes: number, flags = 0): Uint8Array {
  const head = Buffer.allocUnsafe(ENVELOPE_BYTES);
  head.writeUInt8(flags);
  head.writeUInt32BE(lengthBytes, 1);
  return head;
}

/** Returns a message in its envelope. */
export function enveloped(message: Uint8Array, flags = 0): Uint8Array {
  return Buffer.concat([envelopeHead(message.length, flags), message]);
}

/** Compressed, end of a stream, and trailers; no protocol defines another flag. */
const KNOWN_FLAGS = 0b1000_0011;

/**
 * Checks the first byte of a body in a protocol that puts each message behind one
 * byte of flags and four of its length: plain JSON would be read as a message of
 * a length that its letters spell.
 *
 * @throws ConnectError invalid_argument that tells the expected form
 */
export function requireEnvelope(contentType: string, firstByte: number): void {
  if ((firstByte & ~KNOWN_FLAGS) === 0) return;
  const [type = ""] = contentType.split(";");
  throw new ConnectError(
    `the body begins without an envelope: ${type.trim().toLowerCase()} puts each message behind five bytes, ` +
      "a zero and the message's length as a big-endian number of four bytes; docs/clients.md shows a call by curl",
    Code.InvalidArgument,
  );
}
