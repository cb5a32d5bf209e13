import { Code, ConnectError } from "@connectrpc/connect";

/** Protocols that prefix each message of a request with a byte of flags and four of its length. */
const ENVELOPED = /^application\/(connect\+|grpc)/i;

/** Compressed, end of a stream, and trailers; no protocol defines another flag. */
const KNOWN_FLAGS = 0b1000_0011;

/**
 * Passes on the body of a call, unless its protocol uses envelopes and it begins
 * without one: plain JSON would be read as a message of a length that its letters
 * spell.
 *
 * @throws ConnectError invalid_argument that tells the expected form, while the
 *   body is read
 */
export function envelopes(
  contentType: string,
  body: AsyncGenerator<Uint8Array, void>,
): AsyncGenerator<Uint8Array, void> {
  return ENVELOPED.test(contentType) ? checked(contentType, body) : body;
}

async function* checked(
  contentType: string,
  body: AsyncGenerator<Uint8Array, void>,
): AsyncGenerator<Uint8Array, void> {
  let isBegun = false;
  for await (const chunk of body) {
    const [flags] = chunk;
    if (!isBegun && flags !== undefined) {
      isBegun = true;
      if ((flags & ~KNOWN_FLAGS) !== 0) throw withoutEnvelope(contentType);
    }
    yield chunk;
  }
}

function withoutEnvelope(contentType: string): ConnectError {
  const [type = ""] = contentType.split(";");
  return new ConnectError(
    `the body begins without an envelope: ${type.trim().toLowerCase()} puts each message behind five bytes, ` +
      "a zero and the message's length as a big-endian number of four bytes; docs/clients.md shows a call by curl",
    Code.InvalidArgument,
  );
}
