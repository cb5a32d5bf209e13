import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import type { OutputAccount } from "../../rpc/access/call-record.ts";
import { ENVELOPE_BYTES, envelopeHead } from "../../rpc/request/envelope.ts";
import { encodeLarge, type LargeMessage, type LargeMessages } from "../../rpc/response/large-message.ts";
import { inTurns } from "../../rpc/turns.ts";
import { endWith, piecesOf, writePieces } from "../../unary/write-pieces.ts";
import type { HttpResponse } from "../connection/listener.ts";

/** Content types of streams whose messages are JSON. */
const JSON_STREAM = /\+json\b/;

/**
 * Writes one whole response.
 *
 * @param output counts the body until the client has received it
 */
export async function writeWhole(
  res: HttpResponse,
  status: number,
  header: Headers,
  body: Uint8Array,
  output: OutputAccount | undefined,
): Promise<void> {
  output?.hold(body.length);
  setHeaders(res, header);
  res.setHeader("content-length", body.length);
  res.statusCode = status;
  await endWith(res, body, body.length, output);
}

/**
 * Sends the headers of a stream before its first message, which may come late: the
 * protocol layer sends headers only together with that message. Does nothing for a
 * stream that has failed and sent its headers meanwhile.
 *
 * @param contentType of the request, which is also that of the response
 */
export function writeStreamHead(res: HttpResponse, contentType: string): void {
  if (res.headersSent || res.destroyed) return;
  res.statusCode = 200;
  res.setHeader("content-type", contentType);
  // Both response classes have the method, but only one declares it in its types.
  (res as { flushHeaders(): void }).flushHeaders();
}

/**
 * Writes a response as it is produced, at the pace of the client. When the client
 * disconnects, the iteration ends, and the operation's signal is aborted.
 *
 * @param output counts each message until the client has received it
 * @param large the messages that the protocol layer leaves out
 */
export async function writeStream(
  res: HttpResponse,
  response: UniversalServerResponse,
  output: OutputAccount | undefined,
  large?: LargeMessages,
): Promise<void> {
  let begun = false;
  const begin = () => {
    if (begun) return;
    begun = true;
    if (res.headersSent) return;
    res.statusCode = response.status;
    if (response.header) setHeaders(res, response.header);
  };
  for await (const chunk of response.body ?? []) {
    begin();
    const left = chunk[0] === 0 ? large?.take() : undefined;
    const { lengthBytes, pieces } = left
      ? await encodedEnvelope(left, !JSON_STREAM.test(response.header?.get("content-type") ?? ""))
      : { lengthBytes: chunk.length, pieces: piecesOf(chunk) };
    output?.hold(lengthBytes);
    if (!(await writePieces(res, pieces, output))) return;
  }
  begin();
  if (response.trailer) {
    // A response without a body would otherwise end with its headers, and lose the trailers on HTTP/2.
    if (!res.headersSent) writeHead(res, response.status);
    res.addTrailers(Object.fromEntries(response.trailer));
  }
  res.end();
}

/** Encodes a message that the protocol layer has left out, in its envelope, which is the same in all protocols. */
async function encodedEnvelope(message: LargeMessage, isBinary: boolean) {
  const { lengthBytes, pieces } = await encodeLarge(message, isBinary);
  const smallPieces = function* () {
    yield envelopeHead(lengthBytes);
    for (const piece of pieces) yield* piecesOf(piece);
  };
  return { lengthBytes: ENVELOPE_BYTES + lengthBytes, pieces: inTurns(smallPieces()) };
}

/** Writes the status: the two response classes have the same method under different types. */
function writeHead(res: HttpResponse, status: number): void {
  (res.writeHead as (status: number) => unknown).call(res, status);
}

function setHeaders(res: HttpResponse, header: Headers): void {
  for (const [name, value] of header) res.setHeader(name, value);
}
