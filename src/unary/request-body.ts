import type { Readable } from "node:stream";
import { Code, ConnectError } from "@connectrpc/connect";
import { ArrivingBytes, type BodyAccount } from "../rpc/request/arriving-bytes.ts";
import { freeChunk } from "../rpc/request/free-chunk.ts";
import { bodyAborted } from "../rpc/request/request-failure.ts";
import type { HttpRequest, UnaryCall } from "./unary-call.ts";

const EMPTY = new Uint8Array();

/** Assembles the message of a body from its chunks. */
export interface BodyCollector {
  /** @throws ConnectError when the body cannot be accepted */
  add(chunk: Uint8Array): void;
  /**
   * Returns the message, at the end of the body.
   *
   * @throws ConnectError when the body is not a whole message
   */
  whole(): Uint8Array;
  /** Releases the memory of a message that is not read. */
  free(): void;
}

/**
 * Reads the whole body of a request, with the length in its headers. A small one
 * has mostly arrived together with the headers, and is used without a copy.
 *
 * @param account counts the bytes as they arrive
 * @returns the bytes, without a promise when they have already arrived
 * @throws ConnectError like {@link collectBody}; invalid_argument when the length differs
 */
export function requestBody(
  req: HttpRequest,
  lengthBytes: number,
  call: UnaryCall,
  account: BodyAccount,
): Uint8Array | Promise<Uint8Array> {
  if (lengthBytes === 0) return EMPTY;
  if (req.readableLength === lengthBytes) {
    account.set(lengthBytes);
    return req.read() as Uint8Array;
  }
  const bytes = new ArrivingBytes(lengthBytes);
  let filled = 0;
  return collectBody(req, call, account, {
    add(chunk) {
      filled += chunk.length;
      if (filled <= lengthBytes) {
        account.set(filled);
        bytes.add(chunk);
      }
      freeChunk(req, chunk);
    },
    whole() {
      if (filled === lengthBytes) return bytes.take();
      const message = `protocol error: promised ${lengthBytes} bytes, received ${filled}`;
      throw new ConnectError(message, Code.InvalidArgument);
    },
    free: () => bytes.free(),
  });
}

/**
 * Reads a body to its end.
 *
 * @param isCancelled returns true at the end of a body that its client has cancelled
 * @throws ConnectError from the collector; canceled when the body is cut off,
 *   deadline_exceeded when the deadline passes first, BODY_BUDGET_EXCEEDED
 */
export function collectBody(
  body: Readable,
  call: UnaryCall,
  account: BodyAccount,
  collector: BodyCollector,
  isCancelled = () => false,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      body.off("data", onData).off("end", onEnd).off("error", onBroken).off("close", onBroken);
      call.onExpiry(undefined);
    };
    const fail = (error: unknown): void => {
      stop();
      account.release();
      collector.free();
      // The listener handles the rest after the response was sent.
      body.pause();
      reject(error);
    };
    const onData = (chunk: Uint8Array): void => {
      try {
        collector.add(chunk);
      } catch (error) {
        fail(error);
      }
    };
    const onEnd = (): void => {
      try {
        if (isCancelled()) throw bodyAborted();
        const message = collector.whole();
        account.arrived();
        stop();
        resolve(message);
      } catch (error) {
        fail(error);
      }
    };
    const onBroken = (): void => fail(bodyAborted());
    call.onExpiry(fail);
    account.arriving(fail);
    body.on("data", onData).on("end", onEnd).on("error", onBroken).on("close", onBroken);
    if (body.destroyed) onBroken();
    // A stream without a body has ended before this listener was added.
    else if (body.readableEnded) onEnd();
  });
}
