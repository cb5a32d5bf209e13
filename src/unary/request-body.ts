import { Code, ConnectError } from "@connectrpc/connect";
import { freeChunk } from "../rpc/request/free-chunk.ts";
import { bodyAborted } from "../rpc/request/request-failure.ts";
import type { HttpRequest, UnaryCall } from "./unary-call.ts";

const EMPTY = new Uint8Array();

/**
 * Reads the whole body of a request, of the length in its headers. A small one
 * has mostly arrived together with the headers, and is used as it is.
 *
 * @returns bytes, immediately when they have arrived already
 * @throws ConnectError canceled when it breaks off, deadline_exceeded when the
 *   deadline passes first, invalid_argument when its length is another
 */
export function requestBody(
  req: HttpRequest,
  lengthBytes: number,
  call: UnaryCall,
): Uint8Array | Promise<Uint8Array> {
  if (lengthBytes === 0) return EMPTY;
  if (req.readableLength === lengthBytes) return req.read() as Uint8Array;
  return collected(req, lengthBytes, call);
}

function collected(req: HttpRequest, lengthBytes: number, call: UnaryCall): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    // The system allocates memory as bytes are written to it, not for the promised length.
    const bytes = new Uint8Array(lengthBytes);
    let filled = 0;
    const onData = (chunk: Uint8Array): void => {
      if (filled + chunk.length <= lengthBytes) bytes.set(chunk, filled);
      filled += chunk.length;
      freeChunk(req, chunk);
    };
    const settle = (error?: ConnectError): void => {
      req.off("data", onData).off("end", onEnd).off("error", onBroken).off("close", onBroken);
      call.onExpiry(undefined);
      if (!error) return;
      // The listener handles the rest, once the response was sent.
      req.pause();
      reject(error);
    };
    const onEnd = (): void => {
      if (filled === lengthBytes) {
        settle();
        resolve(bytes);
      } else {
        const message = `protocol error: promised ${lengthBytes} bytes, received ${filled}`;
        settle(new ConnectError(message, Code.InvalidArgument));
      }
    };
    const onBroken = (): void => settle(bodyAborted());
    call.onExpiry(settle);
    req.on("data", onData).on("end", onEnd).on("error", onBroken).on("close", onBroken);
    if (req.destroyed) onBroken();
  });
}
