import { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { Readable } from "node:stream";
import { hasEnd, replacePush } from "../connection/node-internals.ts";

/** Receives the events of a request body. No method reads from the body or changes its flow. */
export interface BodyObserver {
  /** Bytes arrived from the client, whether or not anyone reads them. */
  arrived(bytes: number): void;
  /** The server accepts no more bytes for now: the client cannot send, or does not have to. */
  full(): void;
  /** The server accepts bytes (again). */
  wanted(): void;
  /** Nothing more comes: the body is complete, or its client is gone. */
  over(): void;
}

export interface RequestBody {
  readonly isOver: boolean;
  /**
   * Discards the rest of the body instead of storing it for a reader. Calls
   * `exceeded` when the rest is larger than `maxBytes`.
   */
  discard(maxBytes: number, exceeded: () => void): void;
}

const NOTHING_MORE: RequestBody = { isOver: true, discard() {} };

/** The default frame size of HTTP/2. A client with a smaller window can hardly send at all. */
const FRAME_BYTES = 16_384;

/**
 * A request whose body can be observed: Node's parser pushes the body into the
 * request. It is a class because replacing methods on each request would give every
 * request its own object shape, which slows down all code that handles it.
 */
export class Http1Request extends IncomingMessage {
  observed: ObservedBody | undefined = undefined;

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (!this.observed) return super.push(chunk, encoding);
    return this.observed.pass(this, super.push, chunk, encoding);
  }

  override _read(size: number): void {
    this.observed?.observer.wanted();
    super._read(size);
  }
}

/** Observes a body of HTTP/1: the parser stops reading when the request's buffer is full. */
export function observeHttp1Body(req: Http1Request, observer: BodyObserver): RequestBody {
  const isChunked = req.headers["transfer-encoding"] !== undefined;
  const lengthBytes = isChunked ? undefined : Number(req.headers["content-length"] ?? 0);
  if (lengthBytes === 0) return NOTHING_MORE;
  req.observed = new ObservedBody(observer, always, lengthBytes);
  return req.observed;
}

/**
 * Fails the reader of a body of HTTP/1 when its connection breaks. Node does so
 * itself, but not after the response was sent.
 */
export function failWithConnection(req: Http1Request, socket: Http1Request["socket"]): void {
  socket.once("close", () => {
    if (!req.complete) req.destroy(connectionBroken());
  });
}

/**
 * Observes a body of HTTP/2: frames are pushed into the stream, and the client
 * may send until its window is used up.
 *
 * Some clients (Node's is one) that cancel a request end its body before they
 * reset the stream, and part of a message can be a valid message. When the end and
 * the reset arrive together, the reader fails, as it does when an HTTP/1
 * connection breaks.
 */
export function observeHttp2Body(req: Http2ServerRequest, observer: BodyObserver): RequestBody {
  const { stream } = req;
  if (stream.endAfterHeaders || hasEnd(stream)) return NOTHING_MORE;
  const mayClientSend = () => (stream.state.localWindowSize ?? FRAME_BYTES) >= FRAME_BYTES;
  const body = new ObservedBody(observer, mayClientSend);
  let isEnding = false;

  const fail = (): void => {
    if (!body.isOver) req.destroy(connectionBroken());
  };
  // Must run before Node's own listener, which would fail the reader with an error that names no cause.
  stream.prependListener("aborted", fail);
  replacePush(stream, {
    pushed(push, chunk, encoding) {
      if (chunk !== null || body.isOver) return body.pass(stream, push, chunk, encoding);
      const end = (): void => {
        if (stream.closed) fail();
        body.pass(stream, push, null, undefined);
      };
      if (stream.closed) {
        end();
      } else if (!isEnding) {
        // A reset that arrived together with the end has closed the stream by the next turn.
        isEnding = true;
        setImmediate(end);
      }
      return false;
    },
    wanted: () => observer.wanted(),
  });
  return body;
}

/** Wraps a body's stream: notifies the observer, and passes on the bytes for the reader. */
class ObservedBody implements RequestBody {
  isOver = false;
  readonly observer: BodyObserver;
  readonly #mayClientSend: () => boolean;
  /** The missing bytes of a body whose length is known. */
  #missingBytes: number | undefined;
  #discard: ((bytes: number) => void) | undefined;

  constructor(observer: BodyObserver, mayClientSend: () => boolean, lengthBytes?: number) {
    this.observer = observer;
    this.#mayClientSend = mayClientSend;
    this.#missingBytes = lengthBytes;
  }

  /** Replaces the stream's own `push`. */
  pass(
    stream: Readable,
    push: Readable["push"],
    chunk: Buffer | null,
    encoding: BufferEncoding | undefined,
  ): boolean {
    if (chunk === null) {
      this.#end();
      return push.call(stream, null);
    }
    if (this.#missingBytes !== undefined) {
      this.#missingBytes -= chunk.length;
      // The parser reports the end a moment later; the response may have been sent by then.
      if (this.#missingBytes <= 0) this.#end();
    }
    if (this.#discard) {
      this.#discard(chunk.length);
      return true;
    }
    this.observer.arrived(chunk.length);
    const takesMore = push.call(stream, chunk, encoding);
    if (!takesMore || !this.#mayClientSend()) this.observer.full();
    return takesMore;
  }

  #end(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.observer.over();
  }

  discard(maxBytes: number, exceeded: () => void): void {
    let left = maxBytes;
    this.#discard = (bytes) => {
      left -= bytes;
      if (left < 0) exceeded();
    };
  }
}

function always(): boolean {
  return true;
}

/** Returns an error with the code of a broken connection, which readers of bodies look for. */
function connectionBroken(): Error {
  return Object.assign(new Error("the request body was cut off"), { code: "ECONNRESET" });
}
