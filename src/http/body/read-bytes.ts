import { bodyTooLarge } from "../../rpc/error/error.ts";
import type { HttpRequest } from "../connection/listener.ts";
import { incomingBody } from "./incoming-body.ts";

/**
 * Reads the body of a request to something else than the operations. A loop over the request itself would destroy it
 * when it is left early, and the connection that the response goes to with it.
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
