import http2, {
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from "node:http2";
import { observeHttp2Body } from "../body/request-body.ts";
import {
  BODY_TOO_SLOW,
  headerRepeated,
  headersTooLarge,
  MALFORMED,
  NO_TUNNEL,
  type RejectedRequest,
  reject,
  UNKNOWN_EXPECTATION,
} from "../dispatch/rejected-request.ts";
import { hasValidTarget, repeatedHeader } from "../dispatch/request-target.ts";
import type { Connection } from "./connections.ts";
import { suppressWrites } from "./node-internals.ts";
import type { ProtocolServer, ServerContext } from "./server-context.ts";

const { NGHTTP2_CANCEL, NGHTTP2_NO_ERROR } = http2.constants;

/** The overhead of a header field besides its name and value (RFC 9113, section 6.5.2). */
const HEADER_OVERHEAD = 32;

/** Creates the server of connections that speak HTTP/2. */
export function createHttp2Server(context: ServerContext): ProtocolServer {
  const { limits, guard, connections } = context;
  const connectionOf = new WeakMap<ServerHttp2Session, Connection>();

  const server = http2.createServer({
    maxSessionInvalidFrames: limits.maxInvalidFrames,
    maxSessionRejectedStreams: limits.maxRejectedStreams,
    settings: { maxConcurrentStreams: limits.maxConcurrentStreams, maxHeaderListSize: limits.maxHeaderBytes },
  });

  const serve = (
    req: Http2ServerRequest,
    res: Http2ServerResponse,
    refusal?: RejectedRequest,
    isWaiting = false,
  ): void => {
    const { stream } = req;
    const connection = stream.session && connectionOf.get(stream.session as ServerHttp2Session);
    if (!connection || stream.destroyed) return;
    req.on("error", ignore);

    const pace = guard.watch(req, { cut: () => cut(res) });
    const wanted = (): void => {
      if (isWaiting && !res.headersSent) res.writeContinue();
      isWaiting = false;
      pace.wanted();
    };
    const body = observeHttp2Body(req, {
      arrived: (bytes) => pace.arrived(bytes),
      full: () => pace.full(),
      wanted,
      over: () => pace.over(),
    });
    if (body.isOver) pace.over();
    // The client sends no body before it gets `100 Continue`.
    if (isWaiting) pace.full();

    const request = { ended: () => pace.over() };
    connections.begin(connection, request);
    stream.once("close", () => connections.end(connection, request));
    if (!body.isOver) {
      const reset = (): void => {
        if (stream.destroyed) return;
        if (body.isOver) {
          // The body is complete. Unread bytes would keep the stream open and count against the limit of
          // streams. Node's listener would pass them to the request, which pauses the stream when it is full.
          stream.removeAllListeners("data");
          stream.resume();
          return;
        }
        stream.close(NGHTTP2_NO_ERROR);
        // A stream with unread bytes would never close by itself.
        stream.destroy();
      };
      // Node sends the trailers one turn after `wantTrailers`, and their frame one turn later.
      stream.once("wantTrailers", () => setImmediate(() => setImmediate(reset)));
      // A response without a body emits no `wantTrailers`.
      stream.once("finish", () => setTimeout(reset, limits.discardMs).unref());
    }

    const problem = refusal ?? problemOf(req);
    if (problem) reject(res, problem);
    else context.handle(req, res, connection.peer);
  };

  const problemOf = (req: Http2ServerRequest): RejectedRequest | undefined => {
    // Node enforces the limit only once clients have acknowledged it.
    const bytes = req.rawHeaders.reduce((sum, text) => sum + text.length + HEADER_OVERHEAD / 2, 0);
    if (bytes > limits.maxHeaderBytes) return headersTooLarge(limits.maxHeaderBytes);
    const repeated = repeatedHeader(req);
    if (repeated !== undefined) return headerRepeated(repeated);
    return hasValidTarget(req) ? undefined : MALFORMED;
  };

  const cut = (res: Http2ServerResponse): void => {
    const { stream } = res;
    if (stream.headersSent) {
      stream.close(NGHTTP2_CANCEL);
      return;
    }
    reject(res, BODY_TOO_SLOW);
    suppressWrites(res);
    setTimeout(() => stream.destroy(), limits.flushMs).unref();
  };

  server.on("request", (req, res) => serve(req, res));
  server.on("checkContinue", (req, res) => serve(req, res, undefined, true));
  server.on("checkExpectation", (req, res) => serve(req, res, UNKNOWN_EXPECTATION));
  server.on("connect", (req, res) => serve(req, res, NO_TUNNEL));

  return {
    adopt(connection) {
      // Node creates the session within the call.
      server.once("session", (session) => {
        connection.session = session;
        connectionOf.set(session, connection);
      });
      // A client that has ended its side is gone. Node closes such a connection itself on HTTP/1, but not on HTTP/2.
      connection.socket.allowHalfOpen = false;
      server.emit("connection", connection.socket);
    },
  };
}

function ignore(): void {}
