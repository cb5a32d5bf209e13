import type { Http2ServerRequest } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { bodyTooLarge } from "../rpc/error/error.ts";
import { ArrivingBytes, type BodyAccount } from "../rpc/request/arriving-bytes.ts";
import { COMPRESSED_FLAG, ENVELOPE_BYTES, requireEnvelope } from "../rpc/request/envelope.ts";
import { type BodyCollector, collectBody } from "./request-body.ts";
import type { UnaryCall } from "./unary-call.ts";

/**
 * Reads the single message of a unary gRPC call, up to the end of the body.
 *
 * @param account counts the bytes of the message as they arrive
 * @throws ConnectError like the protocol layer: BODY_TOO_LARGE at the envelope; for
 *   a body that is not exactly one whole message; and those of {@link collectBody}
 */
export function grpcMessage(
  req: Http2ServerRequest,
  limitBytes: number,
  call: UnaryCall,
  account: BodyAccount,
): Promise<Uint8Array> {
  const message = new EnvelopedMessage(req.headers["content-type"] ?? "", limitBytes, account);
  // Reads the stream directly: the request object would pass on each chunk one turn later. When the client
  // cancels, the listener destroys the request, but the stream ends normally.
  return collectBody(req.stream, call, account, message, () => req.destroyed);
}

/** Collects the single message of a body from its chunks. */
class EnvelopedMessage implements BodyCollector {
  readonly #contentType: string;
  readonly #limitBytes: number;
  readonly #account: BodyAccount;
  readonly #head = Buffer.alloc(ENVELOPE_BYTES);
  #headBytes = 0;
  /** The message. A small one has mostly arrived in one chunk, and is used without a copy. */
  #message: Uint8Array | ArrivingBytes | undefined;
  #messageBytes = 0;
  /** Number of discarded bytes after the message. */
  #extraBytes = 0;

  constructor(contentType: string, limitBytes: number, account: BodyAccount) {
    this.#contentType = contentType;
    this.#limitBytes = limitBytes;
    this.#account = account;
  }

  add(chunk: Uint8Array): void {
    let rest = chunk;
    if (this.#headBytes < ENVELOPE_BYTES) {
      rest = this.#addToHead(rest);
      if (this.#headBytes < ENVELOPE_BYTES) return;
    }
    const message = this.#message;
    if (!message) rest = this.#begin(rest);
    else if (message instanceof ArrivingBytes) rest = this.#addTo(message, rest);
    this.#extraBytes += rest.length;
    // A client may not notice a response while it is sending, so the rest is awaited unless it is large.
    if (this.#extraBytes > this.#limitBytes) throw extraMessage();
  }

  whole(): Uint8Array {
    const message = this.#message;
    if (!message || (message instanceof ArrivingBytes && message.missing > 0)) throw this.#incomplete();
    if (this.#extraBytes > 0) throw extraMessage();
    if (this.#head.readUInt8() & COMPRESSED_FLAG) {
      // The caller's mistake, although the code, which is that of the protocol layer, says otherwise.
      const problem = "received compressed envelope, but do not know how to decompress";
      throw new ConnectError(problem, Code.Internal);
    }
    return message instanceof ArrivingBytes ? message.take() : message;
  }

  free(): void {
    if (this.#message instanceof ArrivingBytes) this.#message.free();
  }

  #incomplete(): ConnectError {
    // The protocol layer treats an envelope without the first byte of its message as an empty body.
    const isNothing = this.#message ? this.#messageBytes === 0 : this.#headBytes === 0;
    return isNothing
      ? new ConnectError("protocol error: missing input message for unary method", Code.Unimplemented)
      : new ConnectError("protocol error: incomplete envelope", Code.InvalidArgument);
  }

  /** @returns the bytes after the head */
  #addToHead(chunk: Uint8Array): Uint8Array {
    const [first] = chunk;
    if (first !== undefined && this.#headBytes === 0) requireEnvelope(this.#contentType, first);
    const piece = chunk.subarray(0, ENVELOPE_BYTES - this.#headBytes);
    this.#head.set(piece, this.#headBytes);
    this.#headBytes += piece.length;
    return chunk.subarray(piece.length);
  }

  /**
   * @param chunk the bytes that arrived after the head
   * @returns the bytes after the message
   */
  #begin(chunk: Uint8Array): Uint8Array {
    const length = this.#head.readUInt32BE(1);
    if (length > this.#limitBytes) throw bodyTooLarge(this.#limitBytes);
    if (chunk.length < length) {
      this.#message = new ArrivingBytes(length);
      return this.#addTo(this.#message, chunk);
    }
    this.#account.set(length);
    this.#messageBytes = length;
    this.#message = chunk.subarray(0, length);
    return chunk.subarray(length);
  }

  /** @returns the bytes after the message */
  #addTo(message: ArrivingBytes, chunk: Uint8Array): Uint8Array {
    const piece = chunk.subarray(0, message.missing);
    this.#account.set(this.#messageBytes + piece.length);
    message.add(piece);
    this.#messageBytes += piece.length;
    return chunk.subarray(piece.length);
  }
}

function extraMessage(): ConnectError {
  return new ConnectError(
    "protocol error: received extra input message for unary method",
    Code.Unimplemented,
  );
}
