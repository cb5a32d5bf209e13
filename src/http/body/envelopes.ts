import { requireEnvelope } from "../../rpc/request/envelope.ts";

/** Protocols that prefix each message of a request with a byte of flags and four of its length. */
const ENVELOPED = /^application\/(connect\+|grpc)/i;

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
      requireEnvelope(contentType, flags);
    }
    yield chunk;
  }
}
