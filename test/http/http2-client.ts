import { once } from "node:events";
import http2, { type ClientHttp2Session, type ClientHttp2Stream, type OutgoingHttpHeaders } from "node:http2";
import { text } from "node:stream/consumers";

export interface Http2Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly trailers: Readonly<Record<string, unknown>>;
  readonly body: string;
  /** Code of the frame that reset the stream; 0 without one. */
  readonly resetCode: number;
}

export async function connectHttp2(
  port: number,
  options: http2.ClientSessionOptions | http2.SecureClientSessionOptions = {},
  scheme = "http",
): Promise<ClientHttp2Session> {
  const session = http2.connect(`${scheme}://127.0.0.1:${port}`, options);
  session.on("error", () => {});
  await once(session, "connect");
  return session;
}

/** Opens a POST whose body the caller sends. */
export function open(
  session: ClientHttp2Session,
  path: string,
  headers: OutgoingHttpHeaders = {},
): ClientHttp2Stream {
  const stream = session.request({ ":method": "POST", ":path": path, ...headers });
  stream.on("error", () => {});
  return stream;
}

/** Reads a whole response, even when the request was reset. */
export async function answerOf(stream: ClientHttp2Stream): Promise<Http2Answer> {
  let headers: Record<string, unknown> = {};
  let trailers: Record<string, unknown> = {};
  stream.on("response", (received) => {
    headers = { ...received };
  });
  stream.on("trailers", (received) => {
    trailers = Object.fromEntries(Object.entries(received));
  });
  // Not `once`, which rejects on a reset; here the reset is part of the result.
  // A stream that is reset without an error while a write of ours is blocked is aborted but never emits "close".
  const closed = new Promise<void>((resolve) => stream.on("close", resolve).on("aborted", resolve));
  const body = await text(stream).catch(() => "");
  await closed;
  return { status: Number(headers[":status"] ?? 0), headers, trailers, body, resetCode: stream.rstCode };
}

export async function post(session: ClientHttp2Session, path: string, body = ""): Promise<Http2Answer> {
  const stream = open(session, path);
  stream.end(body);
  return await answerOf(stream);
}
