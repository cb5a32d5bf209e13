import { once } from "node:events";
import type { IncomingHttpHeaders } from "node:http";
import http2 from "node:http2";
import https from "node:https";
import type { LookupFunction } from "node:net";
import type { Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { answerOf, open } from "../http/http2-client.ts";
import { HOST, type RunningProxy } from "./proxies.ts";

/** A request as it is sent to a proxy. */
export interface ProxiedRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body: string | Uint8Array;
  /** True to send white space after the body for as long as the other side takes it. */
  readonly isEndless?: boolean;
  /** The address that the client calls from; by default 127.0.0.1. */
  readonly from?: string;
}

/** The response to it. */
export interface ProxiedAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders | Readonly<Record<string, unknown>>;
  readonly trailers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

/** Finds the proxy under the host of its certificate. */
export const lookup: LookupFunction = (_, options, found) => {
  if (options.all) found(null, [{ address: "127.0.0.1", family: 4 }]);
  else found(null, "127.0.0.1", 4);
};

const SPACE = Buffer.alloc(65_536, " ");

function send(body: Writable, request: ProxiedRequest): void {
  if (!request.isEndless) {
    body.end(request.body);
    return;
  }
  const sendSpace = (): void => {
    while (body.writable && body.write(SPACE));
  };
  body.on("drain", sendSpace);
  body.write(request.body, sendSpace);
}

/** Number of resets of a connection after which a request over HTTP/1.1 has failed. */
const MAX_RESETS = 5;

/** Sends a request over HTTP/1.1, on a connection of its own. */
export async function overHttp1(proxy: RunningProxy, request: ProxiedRequest): Promise<ProxiedAnswer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await askOverHttp1(proxy, request);
    } catch (error) {
      // Who closes a connection without having read all of the body resets it: the answer may be lost with that.
      if ((error as NodeJS.ErrnoException).code !== "ECONNRESET" || attempt === MAX_RESETS) throw error;
    }
  }
}

async function askOverHttp1(proxy: RunningProxy, request: ProxiedRequest): Promise<ProxiedAnswer> {
  const { path, headers, from = "127.0.0.1" } = request;
  const req = https.request({
    ...{ host: HOST, port: proxy.port, ca: proxy.ca, lookup, localAddress: from, agent: false },
    ...{ method: "POST", path, headers },
  });
  const answered = once(req, "response");
  // The answer may come before all of a body that is too large has been sent.
  req.on("error", () => {});
  send(req, request);
  const [res] = await answered;
  const answer = {
    status: res.statusCode,
    headers: res.headers,
    text: await text(res),
    trailers: res.trailers,
  };
  req.destroy();
  return answer;
}

/** Sends a request over HTTP/2, which the proxy has to choose when it is offered. */
export async function overHttp2(proxy: RunningProxy, request: ProxiedRequest): Promise<ProxiedAnswer> {
  const { path, headers, from = "127.0.0.1" } = request;
  const options = { ca: proxy.ca, lookup, localAddress: from };
  const session = http2.connect(`https://${HOST}:${proxy.port}`, options);
  try {
    await once(session, "connect");
    if (session.alpnProtocol !== "h2") throw new Error(`the proxy chose ${session.alpnProtocol}`);
    const stream = open(session, path, headers);
    send(stream, request);
    const answer = await answerOf(stream);
    return { ...answer, text: answer.body };
  } finally {
    session.destroy();
  }
}
