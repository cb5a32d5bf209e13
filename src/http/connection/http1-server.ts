import http, { type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { Http1Request } from "../body/request-body.ts";
import {
  HEADERS_TOO_SLOW,
  headerRepeated,
  headersTooLarge,
  MALFORMED,
  NO_TUNNEL,
  type RejectedRequest,
  rejectConnection,
  UNKNOWN_CODING,
  UNKNOWN_EXPECTATION,
} from "../dispatch/rejected-request.ts";
import { hasValidTarget, repeatedHeader, takeOriginForm } from "../dispatch/request-target.ts";
import { destroyWithin } from "./close-connection.ts";
import type { Connection } from "./connections.ts";
import { Http1Exchange } from "./http1-exchange.ts";
import type { ListenerLimits } from "./listener-limits.ts";
import type { ProtocolServer, ServerContext } from "./server-context.ts";

export interface Http1Server extends ProtocolServer {
  /** From now on closes each connection after its current request. */
  drain(): void;
  /** Ends the checks for slow headers. */
  close(): void;
}

/** Creates the server of connections that speak HTTP/1. */
export function createHttp1Server(context: ServerContext): Http1Server {
  const { limits, connections } = context;
  const connectionOf = new WeakMap<Duplex, Connection>();
  /** Connections on which no request could be read; Node reports the same one again with each packet. */
  const refused = new WeakSet<Duplex>();

  const server = http.createServer({
    IncomingMessage: Http1Request,
    headersTimeout: limits.headersTimeoutMs,
    // The body guard does this: a large body may take longer than any fixed time.
    requestTimeout: 0,
    connectionsCheckingInterval: limits.checkIntervalMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    maxHeaderSize: limits.maxHeaderBytes,
    // A request without a host is refused below, with a body.
    requireHostHeader: false,
  });

  const serve = (
    req: Http1Request,
    res: ServerResponse,
    refusal?: RejectedRequest,
    isWaiting = false,
  ): void => {
    const connection = connectionOf.get(req.socket);
    // The request came too late, or after one that ended the connection.
    if (!connection || !req.socket.writable) return;
    const exchange = new Http1Exchange(context, connection, req, res, isWaiting);
    takeOriginForm(req);
    exchange.handle(refusal ?? problemOf(req));
  };

  server.on("request", (req, res) => serve(req, res));
  server.on("checkContinue", (req, res) => serve(req, res, undefined, true));
  server.on("checkExpectation", (req, res) => serve(req, res, UNKNOWN_EXPECTATION));
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (refused.has(socket)) return;
    refused.add(socket);
    const isResponding = [...(connectionOf.get(socket)?.open ?? [])].some((request) => request.isResponding);
    if (isResponding || !socket.writable) {
      socket.destroy();
      return;
    }
    rejectConnection(socket, refusalOf(error.code, limits));
    destroyWithin(socket, limits.discardMs);
  });
  server.on("connect", (_req, socket) => {
    // The client would take this response for that of an earlier request.
    if ((connectionOf.get(socket)?.open.size ?? 0) > 0 || !socket.writable) {
      socket.destroy();
      return;
    }
    rejectConnection(socket, NO_TUNNEL);
    // Further bytes of the client are discarded: a reset would fail the client before it reads the response.
    socket.resume();
    destroyWithin(socket, limits.discardMs);
  });
  // Node starts the checks for slow headers when a server listens; this server never does.
  server.emit("listening");

  return {
    adopt(connection) {
      connectionOf.set(connection.socket, connection);
      server.emit("connection", connection.socket);
    },
    drain() {
      for (const { open } of connections) for (const request of open) request.updatePersistence?.();
    },
    close: () => void server.close(),
  };
}

function problemOf(req: Http1Request): RejectedRequest | undefined {
  // Node leaves every coding but the last, which is chunked, for others to decode (RFC 9112, section 6.1).
  const coding = req.headers["transfer-encoding"]?.toLowerCase() ?? "chunked";
  if (coding !== "chunked") return UNKNOWN_CODING;
  const repeated = repeatedHeader(req);
  if (repeated !== undefined) return headerRepeated(repeated);
  return hasValidTarget(req) ? undefined : MALFORMED;
}

function refusalOf(code: string | undefined, { maxHeaderBytes }: ListenerLimits): RejectedRequest {
  if (code === "HPE_HEADER_OVERFLOW") return headersTooLarge(maxHeaderBytes);
  return code === "ERR_HTTP_REQUEST_TIMEOUT" ? HEADERS_TOO_SLOW : MALFORMED;
}
