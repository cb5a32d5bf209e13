// The undocumented parts of Node's sockets, streams and responses that the server reads or replaces.
// node-internals.test.ts checks each of them on real connections, and fails when a new Node behaves differently.
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import type { HttpResponse } from "./listener.ts";

/** Receives the chunks that Node pushes into a stream. */
export interface PushObserver {
  /**
   * Receives a chunk in place of the stream's own `push`; null is the end.
   * @param push the stream's own
   * @returns whether the stream takes more
   */
  pushed(push: Readable["push"], chunk: Buffer | null, encoding: BufferEncoding | undefined): boolean;
  /** The reader wants more. */
  wanted(): void;
}

/** Observes how a stream is filled: HTTP/2 pushes frames into it without an event. */
export function replacePush(stream: Readable, { pushed, wanted }: PushObserver): void {
  const { push, _read: read } = stream;
  stream.push = (chunk, encoding) => pushed(push, chunk, encoding);
  stream._read = (size) => {
    wanted();
    read.call(stream, size);
  };
}

/**
 * Returns whether the end of a stream has been pushed into it, read or not. HTTP/2 frames that arrive together with the
 * first bytes of their connection are pushed before the `request` event.
 */
export function hasEnd(stream: Readable): boolean {
  return (stream as Readable & { readonly _readableState: { readonly ended: boolean } })._readableState.ended;
}

/**
 * Makes a response silently ignore its handler's writes, because other code has
 * already sent the response.
 */
export function suppressWrites(res: HttpResponse): void {
  const self = () => res;
  const nothing = () => {};
  const taken = () => true;
  Object.assign(res, {
    writeHead: self,
    setHeader: self,
    appendHeader: self,
    removeHeader: nothing,
    addTrailers: nothing,
    flushHeaders: nothing,
    writeContinue: nothing,
    write: taken,
    end: self,
    destroy: self,
  });
  const { statusCode } = res;
  Object.defineProperty(res, "statusCode", { get: () => statusCode, set: nothing });
}

/**
 * The internal handle of a socket. Node has no public API for the unsent part of a
 * large write; its own timeouts read this handle too.
 */
export interface SocketHandle {
  /** All bytes that were passed to the operating system. */
  readonly bytesWritten: number;
  /** The part of them that the operating system has not accepted. */
  readonly writeQueueSize: number;
}

/** Returns the handle of a socket; null for one that is closed. */
export function handleOf(socket: Socket): SocketHandle | null {
  return (socket as Socket & { readonly _handle: SocketHandle | null })._handle;
}
