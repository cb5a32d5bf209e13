import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import { CLIENT_MEMORY_MB } from "../harness/exchange.ts";
import type { FuzzRequest } from "./request.ts";

/** The response to one request. */
export interface FuzzAnswer {
  readonly status: number;
  /** Headers and trailers together, in lower case; gRPC puts its status into either. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** No request of the fuzz test takes long, even on a slow machine; one without a response by now will never get one. */
const ANSWER_WITHIN_MS = 120_000;

export interface Sender {
  /** Rejects when the response is incomplete. */
  send(request: FuzzRequest, token: string): Promise<FuzzAnswer>;
  close(): void;
}

/**
 * Sends requests over kept-alive connections: a few of HTTP/1.1 and one of HTTP/2, reopened when
 * the server closes it.
 */
export function createSender(port: number): Sender {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
  let session: http2.ClientHttp2Session | undefined;
  const openSession = () => {
    if (!session || session.closed || session.destroyed) {
      session = http2.connect(`http://127.0.0.1:${port}`, { maxSessionMemory: CLIENT_MEMORY_MB });
      session.on("error", () => {});
    }
    return session;
  };
  return {
    send: (request, token) => {
      const sent =
        request.http === "2"
          ? viaHttp2(openSession(), request, token)
          : viaHttp1(agent, port, request, token);
      return within(sent, ANSWER_WITHIN_MS);
    },
    close() {
      agent.destroy();
      session?.close();
    },
  };
}

async function viaHttp1(
  agent: http.Agent,
  port: number,
  request: FuzzRequest,
  token: string,
): Promise<FuzzAnswer> {
  const { path, body } = request;
  const headers = { ...request.headers, authorization: `Bearer ${token}`, "content-length": body.length };
  const sent = http.request({ host: "127.0.0.1", port, path, method: "POST", agent, headers });
  // Once the server has answered, it may not read the rest of the body.
  sent.on("error", () => {});
  sent.end(body);
  const [res] = (await once(sent, "response")) as [http.IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of res) chunks.push(chunk);
  return {
    status: res.statusCode ?? 0,
    headers: { ...textual(res.headers), ...textual(res.trailers) },
    body: Buffer.concat(chunks),
  };
}

async function viaHttp2(
  session: http2.ClientHttp2Session,
  request: FuzzRequest,
  token: string,
): Promise<FuzzAnswer> {
  const stream = session.request({
    ":method": "POST",
    ":path": request.path,
    ...request.headers,
    authorization: `Bearer ${token}`,
  });
  let headers: http2.IncomingHttpHeaders = {};
  let trailers: http2.IncomingHttpHeaders = {};
  stream.on("response", (received) => {
    headers = received;
  });
  stream.on("trailers", (received) => {
    trailers = received;
  });
  stream.end(request.body);
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  if (stream.rstCode !== 0) throw new Error(`the stream was reset with code ${stream.rstCode}`);
  const status = Number((headers as Record<string, unknown>)[":status"] ?? 0);
  return { status, headers: { ...textual(headers), ...textual(trailers) }, body: Buffer.concat(chunks) };
}

function textual(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}

async function within<T>(promise: Promise<T>, timeMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${timeMs} ms`)), timeMs);
  });
  return await Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
