import http2 from "node:http2";
import type { Duplex } from "node:stream";
import { HEADERS_TOO_SLOW, rejectConnection } from "../dispatch/rejected-request.ts";
import type { Connection } from "./connections.ts";
import type { ListenerLimits } from "./listener-limits.ts";

/** The last stream in a GOAWAY: streams in flight are still served (RFC 9113, section 6.8). */
const ANY_STREAM = 2 ** 31 - 1;

/** Destroys a socket after a time, if it is still open then. */
export function destroyWithin(socket: Duplex, timeMs: number): void {
  const timer = setTimeout(() => socket.destroy(), timeMs).unref();
  socket.once("close", () => clearTimeout(timer));
}

/** Closes a connection in an orderly way soon after its open requests are answered. */
export function endConnection({ socket, session, open }: Connection, limits: ListenerLimits): void {
  if (session) session.close();
  else if (open.size === 0) socket.destroySoon();
  if (open.size === 0) destroyWithin(socket, limits.discardMs);
}

/** Sends GOAWAY to the client of an HTTP/2 connection, and closes it if no request was in flight. */
export function sendGoAway(connection: Connection, limits: ListenerLimits): void {
  const { session } = connection;
  if (!session || session.closed || session.destroyed) return;
  session.goaway(http2.constants.NGHTTP2_NO_ERROR, ANY_STREAM);
  setTimeout(() => {
    if (connection.open.size === 0) endConnection(connection, limits);
  }, limits.discardMs).unref();
}

/** Ends a connection on which no complete request headers arrived in time. */
export function rejectSlowHeaders(connection: Connection, limits: ListenerLimits): void {
  const { socket, session, isReadable } = connection;
  if (session) {
    endConnection(connection, limits);
  } else if (isReadable && socket.writable) {
    rejectConnection(socket, HEADERS_TOO_SLOW);
    destroyWithin(socket, limits.discardMs);
  } else if (!socket.writableEnded) {
    socket.destroy();
  }
}
