import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { bodyTooLarge, writeConnectError } from "../../rpc/error/error.ts";
import type { BodyHold } from "../body/body-budget.ts";
import { incomingBody } from "../body/incoming-body.ts";
import type { HttpRequest } from "../connection/listener.ts";
import { contentLengthOf } from "../dispatch/run-route.ts";

/** Most bytes of a message: the longest texts that a tool takes, several times over. Images go to the operations. */
export const MAX_MESSAGE_BYTES = 1_048_576;

/** Most levels of a message: its copies are written level by level, and no request of the contract has as many. */
export const MAX_MESSAGE_DEPTH = 64;

const JSON_BODY = /^application\/json\s*(?:;|$)/i;

/**
 * Reads the one JSON value of a request.
 *
 * @param hold counts its bytes; released by the caller
 * @throws ConnectError TRANSPORT_UNSUPPORTED, BODY_TOO_LARGE, BODY_BUDGET_EXCEEDED, BODY_MALFORMED
 */
export async function readMessage(req: HttpRequest, hold: BodyHold): Promise<unknown> {
  const { headers } = req;
  if (!JSON_BODY.test(headers["content-type"] ?? "") || headers["content-encoding"] !== undefined) {
    const allowed = "application/json";
    throw writeConnectError(ErrorReason.TRANSPORT_UNSUPPORTED, `send ${allowed}, not compressed`, {
      allowed,
    });
  }
  if ((contentLengthOf(req) ?? 0) > MAX_MESSAGE_BYTES) throw bodyTooLarge(MAX_MESSAGE_BYTES);
  hold.arriving();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of incomingBody(req, undefined)) {
    bytes += chunk.length;
    if (bytes > MAX_MESSAGE_BYTES) throw bodyTooLarge(MAX_MESSAGE_BYTES);
    hold.set(bytes);
    chunks.push(chunk);
  }
  hold.arrived();
  const message = parsed(Buffer.concat(chunks));
  if (isDeeper(message, MAX_MESSAGE_DEPTH)) {
    throw malformed(`the message has more than ${MAX_MESSAGE_DEPTH} levels`);
  }
  return message;
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw malformed("the message is no JSON");
  }
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((each) => isDeeper(each, levels - 1));
}

function malformed(message: string) {
  return writeConnectError(ErrorReason.BODY_MALFORMED, message);
}
