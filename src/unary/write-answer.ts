import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { createGzip } from "node:zlib";
import { compressionNegotiate, validateReadWriteMaxBytes } from "@connectrpc/connect/protocol";
import { headerUnaryAcceptEncoding } from "@connectrpc/connect/protocol-connect";
import { compressionGzip } from "@connectrpc/connect-node";
import type { OutputAccount } from "../rpc/access/call-record.ts";
import { endOfTurn } from "./end-of-turn.ts";
import { type HttpRequest, type HttpResponse, isGone } from "./unary-call.ts";
import { type Body, bytesOf, endWith, joined, PIECE_BYTES, piecesOf } from "./write-pieces.ts";

/** Answers below this are sent as they are; the protocol layer's own number. */
const { compressMinBytes } = validateReadWriteMaxBytes(undefined, undefined, undefined);

const COMPRESSIONS = [compressionGzip];

/** A whole answer. */
export interface WholeAnswer {
  readonly status: number;
  readonly contentType: string;
  /** What the operation or an error has set. */
  readonly header: Headers | undefined;
  readonly trailer: Headers | undefined;
  readonly body: Body;
  /** False for an answer that is sent as it is, however large. */
  readonly mayCompress: boolean;
}

/**
 * Sends an answer, compressed if its client takes that and it is large.
 *
 * @param output counts the body until the client has taken it
 */
export async function writeAnswer(
  req: HttpRequest,
  res: HttpResponse,
  answer: WholeAnswer,
  output: OutputAccount | undefined,
): Promise<void> {
  let { body } = answer;
  let lengthBytes = bytesOf(body);
  let encoding: string | undefined;
  const accepted = req.headers["accept-encoding"];
  if (accepted !== undefined && answer.mayCompress && lengthBytes >= compressMinBytes) {
    const { response } = compressionNegotiate(
      COMPRESSIONS,
      null,
      String(accepted),
      headerUnaryAcceptEncoding,
    );
    if (response) {
      encoding = response.name;
      body = lengthBytes > PIECE_BYTES ? await gzip(body) : await response.compress(oneBuffer(body));
      lengthBytes = body.length;
    }
  }
  output?.hold(lengthBytes);
  await endOfTurn();
  if (isGone(res)) return;
  answer.header?.forEach((value, name) => void res.setHeader(name, value));
  answer.trailer?.forEach((value, name) => void res.setHeader(`trailer-${name}`, value));
  res.setHeader("content-type", answer.contentType);
  if (encoding !== undefined) res.setHeader("content-encoding", encoding);
  res.setHeader("content-length", lengthBytes);
  res.statusCode = answer.status;
  await endWith(res, body, lengthBytes, output);
}

function oneBuffer(body: Body): Uint8Array<ArrayBuffer> {
  const whole = joined(body);
  return typeof whole === "string" ? Buffer.from(whole) : new Uint8Array(whole);
}

/** Compresses a large body beside the main thread, which makes no copy of the whole. */
function gzip(body: Body): Promise<Uint8Array> {
  return buffer(Readable.from(piecesOf(body)).pipe(createGzip()));
}
