import type http from "node:http";
import type http2 from "node:http2";
import net, { type AddressInfo, type Socket } from "node:net";
import tls from "node:tls";
import { createBodyGuard } from "../body/body-guard.ts";
import { MALFORMED, rejectConnection } from "../dispatch/rejected-request.ts";
import { endConnection, rejectSlowHeaders, sendGoAway } from "./close-connection.ts";
import { type Connection, trackConnections } from "./connections.ts";
import { type Drain, startDrain } from "./drain.ts";
import { createHttp1Server } from "./http1-server.ts";
import { createHttp2Server } from "./http2-server.ts";
import { LISTENER_LIMITS, type ListenerLimits } from "./listener-limits.ts";
import { createTlsServer, type TlsFiles, useTlsFiles } from "./tls-server.ts";

export { LISTENER_LIMITS, type ListenerLimits };

export type HttpRequest = http.IncomingMessage | http2.Http2ServerRequest;
export type HttpResponse = http.ServerResponse | http2.Http2ServerResponse;

export interface ListenerOptions {
  /** The name or address of the interface. */
  readonly host: string;
  /** The port; 0 for any free one. */
  readonly port: number;
  /**
   * The TLS key and certificate in PEM. With them the listener accepts only TLS,
   * without them only plain text.
   */
  readonly tls?: TlsFiles;
  /**
   * Handles a request; must not throw, and must end every response. `peer` is the address of the
   * other end of the connection: a client or a proxy.
   */
  readonly handle: (req: HttpRequest, res: HttpResponse, peer: string) => void;
  /** Maximum number of open connections from one address; absent for no limit. */
  readonly perAddress?: { readonly most: number; readonly isExempt: (address: string) => boolean };
  /** Limits other than LISTENER_LIMITS. */
  readonly limits?: Partial<ListenerLimits>;
}

export interface Listener {
  /**
   * Starts to listen; rejects when the address is not available.
   *
   * @returns the address that it listens on, and its URL, without a trailing slash
   */
  listen(): Promise<{ host: string; port: number; url: string }>;
  /** The number of requests whose response has not been fully written. */
  readonly active: number;
  /** The number of connections that were closed at once because their address had too many. */
  readonly refused: number;
  /**
   * Uses another TLS key and certificate for the connections that begin from now on.
   *
   * @throws when key and certificate do not belong together, or the listener does not use TLS; the current files stay
   *   in use
   */
  useTls(files: TlsFiles): void;
  /**
   * Waits for the requests in flight, then closes every connection and stops
   * listening. Until then new requests are still served, so that probes see that
   * the server is shutting down. In the last quarter of the time no new connection
   * is accepted, so that clients that never pause do not delay other responses.
   *
   * @param graceMs by default the `drainMs` of the limits
   * @returns whether all requests were answered within that time
   */
  drain(graceMs?: number): Promise<boolean>;
  /** Destroys all connections and stops listening, at once. */
  close(): Promise<void>;
}

/**
 * Opens one port for HTTP/1.1 and HTTP/2, with the limits of LISTENER_LIMITS on
 * each connection.
 *
 * @throws when the TLS key and certificate cannot be used together
 */
export function createListener(options: ListenerOptions): Listener {
  const limits: ListenerLimits = { ...LISTENER_LIMITS, ...options.limits };
  const guard = createBodyGuard(limits);
  let drain: Drain | undefined;
  let refused = 0;

  const connections = trackConnections(limits, (connection) => {
    if (drain && connection.open.size === 0) sendGoAway(connection, limits);
    drain?.requestEnded();
  });
  const context = {
    limits,
    guard,
    connections,
    isDraining: () => drain !== undefined,
    handle: options.handle,
  };
  const http1 = createHttp1Server(context);
  const http2 = createHttp2Server(context);

  const accept = (socket: Socket, isReadable: boolean): Connection => {
    socket.on("error", ignore);
    const connection = connections.accept(socket, isReadable);
    const { most = Number.POSITIVE_INFINITY, isExempt = () => true } = options.perAddress ?? {};
    if (connections.from(connection.peer) > most && !isExempt(connection.peer)) {
      refused += 1;
      socket.destroy();
    }
    return connection;
  };
  const route = (connection: Connection, protocol: Sniffed): void => {
    const { socket } = connection;
    // The connection may have been rejected while the server waited for its first bytes.
    if (!socket.writable) socket.destroy();
    else if (protocol === "ended") rejectConnection(socket, MALFORMED);
    else (protocol === "http2" ? http2 : http1).adopt(connection);
  };
  const server = options.tls
    ? createTlsServer(options.tls, limits, (socket) => accept(socket, false), route)
    : net.createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
        const connection = accept(socket, true);
        sniffProtocol(socket, (protocol) => route(connection, protocol));
      });
  // Once the server listens, an error means that one connection could not be accepted.
  server.on("error", ignore);

  const check = (): void => {
    guard.check();
    const { headers, next } = connections.overdue();
    for (const connection of headers) rejectSlowHeaders(connection, limits);
    for (const connection of next) endConnection(connection, limits);
  };
  let checks: NodeJS.Timeout | undefined;

  const close = async (): Promise<void> => {
    clearInterval(checks);
    http1.close();
    if (server.listening) server.close();
    for (const { socket } of connections) socket.destroy();
    await new Promise<void>((resolve) => connections.whenEmpty(resolve));
  };

  return {
    async listen() {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      server.once("error", reject);
      server.listen({ host: options.host, port: options.port }, resolve);
      await promise;
      server.off("error", reject);
      checks = setInterval(check, limits.checkIntervalMs).unref();
      const { address, port } = server.address() as AddressInfo;
      const host = address.includes(":") ? `[${address}]` : address;
      return { host: address, port, url: `${options.tls ? "https" : "http"}://${host}:${port}` };
    },
    get active() {
      return connections.active;
    },
    get refused() {
      return refused;
    },
    useTls(files) {
      if (!(server instanceof tls.Server)) throw new Error("the listener speaks no TLS");
      useTlsFiles(server, files);
    },
    async drain(graceMs = limits.drainMs) {
      drain ??= startDrain(server, connections, limits, graceMs);
      http1.drain();
      const isDone = await drain.done;
      await close();
      return isDone;
    },
    close,
  };
}

function ignore(): void {}

/** The first bytes of an HTTP/2 client (RFC 9113, section 3.4). */
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** `ended`: the client finished sending before the bytes identified the protocol. */
type Sniffed = "http1" | "http2" | "ended";

/**
 * Reads the first bytes of a connection until they differ from the preface of
 * HTTP/2 or complete it. The bytes are put back before `decided` is called, once,
 * so that a server can take the socket over as if it were untouched.
 */
function sniffProtocol(socket: Socket, decided: (protocol: Sniffed) => void): void {
  let seen: Buffer = Buffer.alloc(0);

  const decide = (protocol: Sniffed): void => {
    socket.off("readable", onReadable);
    socket.off("end", onEnd);
    decided(protocol);
  };
  const onEnd = (): void => decide("ended");
  const onReadable = (): void => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    seen = Buffer.concat([seen, chunk]);
    const length = Math.min(seen.length, PREFACE.length);
    const matches = seen.compare(PREFACE, 0, length, 0, length) === 0;
    if (matches && length < PREFACE.length) return;
    socket.unshift(seen);
    decide(matches ? "http2" : "http1");
  };

  socket.on("readable", onReadable);
  socket.on("end", onEnd);
}
