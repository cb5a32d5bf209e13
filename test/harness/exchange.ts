import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";

/** One complete HTTP request, with no headers added but those that HTTP itself requires. */
export interface Exchange {
  readonly http: "1.1" | "2";
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** True to send Content-Length; otherwise the body is chunked in HTTP/1.1. */
  readonly hasContentLength: boolean;
  /** True to send the body in two parts, the second a moment later. */
  readonly isSplit: boolean;
}

export interface Exchanged {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly trailers: Readonly<Record<string, string>>;
}

/** Sends requests over kept-alive connections; rejects when a response is incomplete. */
export interface Exchanger {
  send(exchange: Exchange): Promise<Exchanged>;
  close(): void;
}

/** Node's client keeps counting unsent data when the response came first; this limit is never reached. */
export const CLIENT_MEMORY_MB = 4_000;

export function createExchanger(port: number): Exchanger {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
  const session = http2.connect(`http://127.0.0.1:${port}`, { maxSessionMemory: CLIENT_MEMORY_MB });
  return {
    send: (exchange) =>
      exchange.http === "2" ? viaHttp2(session, exchange) : viaHttp1(agent, port, exchange),
    close() {
      agent.destroy();
      session.destroy();
    },
  };
}

async function viaHttp1(agent: http.Agent, port: number, exchange: Exchange): Promise<Exchanged> {
  const { method, path, headers, body, hasContentLength } = exchange;
  const framing = hasContentLength ? { "content-length": body.length } : { "transfer-encoding": "chunked" };
  const sent = http.request({
    host: "127.0.0.1",
    port,
    path,
    method,
    agent,
    headers: { ...headers, ...framing },
  });
  sendBody(sent, exchange);
  const [res] = (await once(sent, "response")) as [http.IncomingMessage];
  const received = await whole(res);
  return {
    status: res.statusCode ?? 0,
    headers: textual(res.headers),
    body: received,
    trailers: textual(res.trailers),
  };
}

async function viaHttp2(session: http2.ClientHttp2Session, exchange: Exchange): Promise<Exchanged> {
  const { method, path, headers, body, hasContentLength, isSplit } = exchange;
  const length = hasContentLength && { "content-length": body.length };
  const stream = session.request(
    { ":method": method, ":path": path, ...headers, ...length },
    // An empty body ends with the headers, or in its own frame.
    { endStream: body.length === 0 && !isSplit },
  );
  let trailers: http2.IncomingHttpHeaders = {};
  stream.on("trailers", (sent: http2.IncomingHttpHeaders) => {
    trailers = sent;
  });
  if (!stream.writableEnded) sendBody(stream, exchange);
  const cut = once(stream, "close").then(() => {
    throw new Error("the stream was closed without a response");
  });
  const [received] = (await Promise.race([once(stream, "response"), cut])) as [http2.IncomingHttpHeaders];
  const { ":status": status, ...rest } = received as Record<string, string>;
  const answer = await whole(stream);
  return { status: Number(status), headers: textual(rest), body: answer, trailers: textual(trailers) };
}

function sendBody(to: http.ClientRequest | http2.ClientHttp2Stream, { body, isSplit }: Exchange): void {
  to.on("error", () => {});
  if (!isSplit) {
    to.end(body);
    return;
  }
  to.write(body.subarray(0, body.length / 2));
  setImmediate(() => to.end(body.subarray(body.length / 2)));
}

async function whole(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return Buffer.concat(all);
}

function textual(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}
