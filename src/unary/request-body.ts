import { Code, ConnectError } from "@connectrpc/connect";
import { ArrivingBytes, type BodyAccount } from "../rpc/request/arriving-bytes.ts";
import { freeChunk } from "../rpc/request/free-chunk.ts";
import { bodyAborted } from "../rpc/request/request-failure.ts";
import type { HttpRequest, UnaryCall } from "./unary-call.ts";

const EMPTY = new Uint8Array();

/**
 * Reads the whole body of a request, of the length in its headers. A small one
 * has mostly arrived together with the headers, and is used as it is.
 *
 * @param hold counts the bytes as they come
 * @returns bytes, immediately when they have arrived already
 * @throws ConnectError canceled when it breaks off, deadline_exceeded when the
 *   deadline passes first, invalid_argument when its length is another,
 *   BODY_BUDGET_EXCEEDED
 */
export function requestBody(
  req: HttpRequest,
  lengthBytes: number,
  call: UnaryCall,
  hold: BodyAccount,
): Uint8Array | Promise<Uint8Array> {
  if (lengthBytes === 0) return EMPTY;
  if (req.readableLength === lengthBytes) {
    hold.set(lengthBytes);
    return req.read() as Uint8Array;
  }
  return collected(req, lengthBytes, call, hold);
}

function collected(
  req: HttpRequest,
  lengthBytes: number,
  call: UnaryCall,
  hold: BodyAccount,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const bytes = new ArrivingBytes(lengthBytes);
    let filled = 0;
    const onData = (chunk: Uint8Array): void => {
      filled += chunk.length;
      if (filled <= lengthBytes) {
        try {
          hold.set(filled);
        } catch (error) {
          settle(error as ConnectError);
          return;
        }
        bytes.add(chunk);
      }
      freeChunk(req, chunk);
    };
    const settle = (error?: ConnectError): void => {
      req.off("data", onData).off("end", onEnd).off("error", onBroken).off("close", onBroken);
      call.onExpiry(undefined);
      if (!error) {
        hold.arrived();
        return;
      }
      hold.release();
      bytes.free();
      // The listener handles the rest, once the response was sent.
      req.pause();
      reject(error);
    };
    const onEnd = (): void => {
      if (filled === lengthBytes) {
        settle();
        resolve(bytes.take());
      } else {
        const message = `protocol error: promised ${lengthBytes} bytes, received ${filled}`;
        settle(new ConnectError(message, Code.InvalidArgument));
      }
    };
    const onBroken = (): void => settle(bodyAborted());
    call.onExpiry(settle);
    hold.arriving(settle);
    req.on("data", onData).on("end", onEnd).on("error", onBroken).on("close", onBroken);
    if (req.destroyed) onBroken();
  });
}
