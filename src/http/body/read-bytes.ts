import { bodyTooLarge } from "../../rpc/error/error.ts";
import type { HttpRequest } from "../connection/listener.ts";
import { incomingBody } from "./incoming-body.ts";

/**
 * Reads the body of a request that is not a call of an operation. Leaving a loop over the request itself early would
 * destroy the request, and with it the connection on which the response is sent.
 *
 * @throws ConnectError BODY_TOO_LARGE, at the first byte over the limit, and canceled for a body that was cut off
 */
export async function readBytes(req: HttpRequest, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of incomingBody(req, undefined)) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw bodyTooLarge(maxBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
