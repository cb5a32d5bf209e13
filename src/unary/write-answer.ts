import { compressionNegotiate, validateReadWriteMaxBytes } from "@connectrpc/connect/protocol";
import { headerUnaryAcceptEncoding } from "@connectrpc/connect/protocol-connect";
import { compressionGzip } from "@connectrpc/connect-node";
import { endOfTurn } from "./end-of-turn.ts";
import { type HttpRequest, type HttpResponse, isGone } from "./unary-call.ts";

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
  readonly body: string | Uint8Array;
  /** False for an answer that is sent as it is, however large. */
  readonly mayCompress: boolean;
}

/** Sends an answer in one piece, compressed if its client takes that and it is large. */
export async function writeAnswer(req: HttpRequest, res: HttpResponse, answer: WholeAnswer): Promise<void> {
  let { body } = answer;
  let lengthBytes = typeof body === "string" ? Buffer.byteLength(body) : body.length;
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
      body = await response.compress(typeof body === "string" ? Buffer.from(body) : new Uint8Array(body));
      lengthBytes = body.length;
    }
  }
  await endOfTurn();
  if (isGone(res)) return;
  answer.header?.forEach((value, name) => void res.setHeader(name, value));
  answer.trailer?.forEach((value, name) => void res.setHeader(`trailer-${name}`, value));
  res.setHeader("content-type", answer.contentType);
  if (encoding !== undefined) res.setHeader("content-encoding", encoding);
  res.setHeader("content-length", lengthBytes);
  res.statusCode = answer.status;
  res.end(body);
}
