import { requireEnvelope } from "../../rpc/request/envelope.ts";

/** Protocols that prefix each message of a request with a byte of flags and four of its length. */
const ENVELOPED = /^application\/(connect\+|grpc)/i;

/**
 * Passes on the body of a call. Rejects a body without an envelope when the
 * protocol requires one: the first characters of plain JSON would be read as the
 * length of a message.
 *
 * @throws ConnectError invalid_argument that names the expected form, while the
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
