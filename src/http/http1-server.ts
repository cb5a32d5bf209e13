import http, { type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import {
  BODY_TOO_SLOW,
  HEADERS_TOO_SLOW,
  headersTooLarge,
  MALFORMED,
  mute,
  type Refusal,
  refuse,
  refuseConnection,
  UNKNOWN_EXPECTATION,
} from "./answer.ts";
import type { Connection } from "./connections.ts";
import { destroyWithin } from "./farewell.ts";
import type { ListenerLimits } from "./listener-limits.ts";
import { observeHttp1Body, type RequestBody } from "./request-body.ts";
import { hasTarget } from "./request-target.ts";
import type { ProtocolServer, ServerContext } from "./server-context.ts";

export interface Http1Server extends ProtocolServer {
  /** From now on no connection is kept for a next request. */
  drain(): void;
  /** Ends the watch over slow headers. */
  close(): void;
}

/** Serves connections that speak HTTP/1. */
export function createHttp1Server(context: ServerContext): Http1Server {
  const { limits, guard, connections } = context;
  const connectionOf = new WeakMap<Duplex, Connection>();
  /** Responses that have not been fully written, with what decides whether their connection lives on. */
  const settlers = new Map<ServerResponse, () => void>();
  /** Connections on which no request could be read; Node reports the same one again with each packet. */
  const refused = new WeakSet<Duplex>();

  const server = http.createServer({
    headersTimeout: limits.headersTimeoutMs,
    // The body guard takes this part: a large body may take longer than any fixed time.
    requestTimeout: 0,
    connectionsCheckingInterval: limits.checkIntervalMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    maxHeaderSize: limits.maxHeaderBytes,
    // A request without a host is refused below, with a body.
    requireHostHeader: false,
  });

  const serve = (req: IncomingMessage, res: ServerResponse, refusal?: Refusal, isWaiting = false): void => {
    const { socket } = req;
    const connection = connectionOf.get(socket);
    // A request behind one that ended the connection, or too late.
    if (!connection || !socket.writable) return;
    req.on("error", ignore);
    res.on("error", ignore);

    const pace = guard.watch(req, () => cut(socket, res));
    const wanted = (): void => {
      if (isWaiting && !res.headersSent) res.writeContinue();
      isWaiting = false;
      pace.wanted();
    };
    const over = (): void => {
      pace.over();
      settle();
    };
    const body = observeHttp1Body(req, { ...pace, wanted, over });
    if (body.isOver) pace.over();
    // The client sends no body before it is asked to.
    if (isWaiting) pace.full();

    const mayPersist = res.shouldKeepAlive;
    const settle = (): void => {
      res.shouldKeepAlive = mayPersist && body.isOver && !context.isDraining();
    };
    settle();
    settlers.set(res, settle);
    const end = connections.begin(connection, () => {
      pace.over();
      settlers.delete(res);
    });
    res.once("close", end);
    // Before Node's own listener, which would destroy the socket and take the answer with it.
    res.prependOnceListener("finish", () => {
      if (!body.isOver) closeUnread(socket, req, body);
    });

    const problem = refusal ?? (hasTarget(req) ? undefined : MALFORMED);
    if (problem) {
      res.shouldKeepAlive = false;
      refuse(res, problem);
    } else {
      context.handle(req, res);
    }
  };

  const cut = (socket: Socket, res: ServerResponse): void => {
    if (res.headersSent) {
      socket.destroy();
      return;
    }
    res.shouldKeepAlive = false;
    refuse(res, BODY_TOO_SLOW);
    mute(res);
    destroyWithin(socket, limits.flushMs);
  };

  /** Ends a connection whose client may still be sending a body that nobody wants. */
  const closeUnread = (socket: Socket, req: IncomingMessage, body: RequestBody): void => {
    socket.destroySoon = ignore;
    // Not destroyed yet: the reset would fail the client's next write before it reads the answer.
    body.discard(limits.discardBytes, () => void socket.pause());
    socket.end();
    // Counts as reading, without which Node would drop the rest uncounted; the socket may be paused besides.
    req.resume();
    socket.resume();
    destroyWithin(socket, limits.discardMs);
  };

  server.on("request", (req, res) => serve(req, res));
  server.on("checkContinue", (req, res) => serve(req, res, undefined, true));
  server.on("checkExpectation", (req, res) => serve(req, res, UNKNOWN_EXPECTATION));
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (refused.has(socket)) return;
    refused.add(socket);
    const hasAnswered = [...settlers.keys()].some((res) => res.socket === socket && res.headersSent);
    if (hasAnswered || !socket.writable) {
      socket.destroy();
      return;
    }
    refuseConnection(socket, refusalOf(error.code, limits));
    destroyWithin(socket, limits.discardMs);
  });
  // A listening server starts its watch over slow headers; this one is handed its connections.
  server.emit("listening");

  return {
    adopt(connection) {
      connectionOf.set(connection.socket, connection);
      server.emit("connection", connection.socket);
    },
    drain() {
      for (const settle of settlers.values()) settle();
    },
    close: () => void server.close(),
  };
}

function refusalOf(code: string | undefined, { maxHeaderBytes }: ListenerLimits): Refusal {
  if (code === "HPE_HEADER_OVERFLOW") return headersTooLarge(maxHeaderBytes);
  return code === "ERR_HTTP_REQUEST_TIMEOUT" ? HEADERS_TOO_SLOW : MALFORMED;
}

function ignore(): void {}
