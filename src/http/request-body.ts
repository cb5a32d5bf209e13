import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { Readable } from "node:stream";

/** Told what happens to a request body. None of it reads from the body or changes its flow. */
export interface BodyObserver {
  /** Bytes came in from the client, whether or not anyone reads them. */
  arrived(bytes: number): void;
  /** Our side takes no more for now: the client cannot send, or need not. */
  full(): void;
  /** Our side takes more (again). */
  wanted(): void;
  /** Nothing more comes: the body is complete, or its client is gone. */
  over(): void;
}

export interface RequestBody {
  readonly isOver: boolean;
  /**
   * Drops what still arrives instead of keeping it for a reader. `exceeded` is
   * called when that is more than `mostBytes`.
   */
  discard(mostBytes: number, exceeded: () => void): void;
}

const EMPTY_BODY: RequestBody = { isOver: true, discard() {} };

/** A default frame of HTTP/2. A client that may send less than this might as well not send at all. */
const FRAME_BYTES = 16_384;

/** Observes a body of HTTP/1: Node's parser pushes it into the request, and stops reading when that says so. */
export function observeHttp1Body(req: IncomingMessage, observer: BodyObserver): RequestBody {
  const length = req.headers["content-length"];
  if (req.headers["transfer-encoding"] === undefined && (length === undefined || Number(length) === 0)) {
    return EMPTY_BODY;
  }
  const { socket } = req;
  const onClose = (): void => {
    // Node fails the reader when the connection breaks, but no longer once the answer has left.
    if (!req.complete) req.destroy(clientGone());
    body.end();
  };
  const over = (): void => {
    socket.off("close", onClose);
    observer.over();
  };
  const body = observe(req, { ...observer, over }, () => true);
  socket.once("close", onClose);
  return body;
}

/**
 * Observes a body of HTTP/2: frames are pushed into the stream, and the client
 * may go on sending until its window is used up.
 *
 * Some clients (Node's is one) that cancel a request end its body before they
 * reset the stream, and half a message can be a valid one. When both come
 * together the reader fails, as it does when a connection of HTTP/1 breaks.
 */
export function observeHttp2Body(req: Http2ServerRequest, observer: BodyObserver): RequestBody {
  const { stream } = req;
  if (stream.endAfterHeaders) return EMPTY_BODY;
  const body = observe(stream, observer, () => (stream.state.localWindowSize ?? FRAME_BYTES) >= FRAME_BYTES);
  const push = stream.push;
  let isEnding = false;

  const fail = (): void => {
    if (!body.isOver) req.destroy(clientGone());
  };
  const end = (): void => {
    if (stream.closed) fail();
    push.call(stream, null);
  };
  // Before Node's own listener, which would have the reader fail for a reason that names no cause.
  stream.prependListener("aborted", fail);
  stream.push = (chunk, encoding) => {
    if (chunk !== null || body.isOver) return push.call(stream, chunk, encoding);
    if (stream.closed) {
      end();
    } else if (!isEnding) {
      // A reset that came with it shows in a moment: then the stream is closed.
      isEnding = true;
      setImmediate(end);
    }
    return false;
  };
  return body;
}

function observe(source: Readable, observer: BodyObserver, mayClientSend: () => boolean) {
  const push = source.push;
  const read = source._read;
  let isOver = false;
  let discard: ((bytes: number) => void) | undefined;

  const end = (): void => {
    if (isOver) return;
    isOver = true;
    observer.over();
  };
  source.push = (chunk: Buffer | null, encoding) => {
    if (chunk === null) {
      end();
      return push.call(source, null);
    }
    if (discard) {
      discard(chunk.length);
      return true;
    }
    observer.arrived(chunk.length);
    const takesMore = push.call(source, chunk, encoding);
    if (!takesMore || !mayClientSend()) observer.full();
    return takesMore;
  };
  source._read = (size) => {
    observer.wanted();
    read.call(source, size);
  };
  return {
    get isOver() {
      return isOver;
    },
    end,
    discard(mostBytes: number, exceeded: () => void) {
      let left = mostBytes;
      discard = (bytes) => {
        left -= bytes;
        if (left < 0) exceeded();
      };
    },
  };
}

/** The code is the one of a connection that broke, which is what readers of bodies look for. */
function clientGone(): Error {
  return Object.assign(new Error("the request body was cut off"), { code: "ECONNRESET" });
}
