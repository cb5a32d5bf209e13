import type { ConnectError } from "@connectrpc/connect";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { bodyTooLarge, writeConnectError } from "../../rpc/error/error.ts";
import { freeChunk } from "../../rpc/request/free-chunk.ts";
import { countJson } from "../../rpc/request/json-count.ts";
import type { BodyHold } from "../body/body-budget.ts";
import { ByteSource } from "../body/byte-source.ts";
import { incomingBody } from "../body/incoming-body.ts";
import type { HttpRequest } from "../connection/listener.ts";
import { contentLengthOf } from "../dispatch/run-route.ts";

/** Maximum bytes of a message: several times the longest texts that a tool accepts. Images need the operations. */
const MAX_MESSAGE_BYTES = 1_048_576;

/**
 * Maximum complexity of a message, checked before it is parsed. No request that tools are meant for comes close, and
 * the bounds of the operation's own request apply in addition.
 */
const MESSAGE_BOUNDS = { parts: 20_000, keys: 20_000, depth: 64 };

const JSON_BODY = /^application\/json\s*(?:;|$)/i;

/**
 * Reads the single JSON-RPC message of a request. A batch is refused: it would be many calls that count as one.
 *
 * @param hold counts its bytes; released by the caller
 * @throws ConnectError TRANSPORT_UNSUPPORTED, BODY_TOO_LARGE, BODY_TOO_COMPLEX, BODY_BUDGET_EXCEEDED, BODY_MALFORMED
 */
export async function readMessage(req: HttpRequest, hold: BodyHold): Promise<object> {
  const { headers } = req;
  if (!JSON_BODY.test(headers["content-type"] ?? "") || headers["content-encoding"] !== undefined) {
    const allowed = "application/json";
    throw writeConnectError(ErrorReason.TRANSPORT_UNSUPPORTED, `send ${allowed}, not compressed`, {
      allowed,
    });
  }
  if ((contentLengthOf(req) ?? 0) > MAX_MESSAGE_BYTES) throw bodyTooLarge(MAX_MESSAGE_BYTES);
  const body = await readBody(req, hold);
  countJson(body, MESSAGE_BOUNDS);
  const message = parsed(body);
  if (typeof message === "object" && message !== null && !Array.isArray(message)) return message;
  throw malformed("the request must be one JSON-RPC message, an object: batches are not supported");
}

async function readBody(req: HttpRequest, hold: BodyHold): Promise<Uint8Array> {
  const source = new ByteSource(incomingBody(req, undefined), (chunk) => freeChunk(req, chunk), hold);
  try {
    source.begin();
    const body = await source.rest(MAX_MESSAGE_BYTES);
    hold.arrived();
    return body;
  } finally {
    source.close();
  }
}

function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw malformed(NOT_JSON);
  }
}

const NOT_JSON = "the message is not JSON";

/** Codes of JSON-RPC: for what is not JSON, for JSON that is no message, and for errors that a server defines itself. */
const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;
const SERVER_ERROR = -32_000;

/** Returns the code of JSON-RPC for the error of a request that reaches no tool. */
export function jsonRpcCodeOf(error: ConnectError): number {
  const [detail] = error.findDetails(ErrorDetailSchema);
  if (detail?.reason !== ErrorReason.BODY_MALFORMED) return SERVER_ERROR;
  return error.rawMessage === NOT_JSON ? PARSE_ERROR : INVALID_REQUEST;
}

function malformed(message: string) {
  return writeConnectError(ErrorReason.BODY_MALFORMED, message);
}
