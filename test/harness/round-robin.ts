import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A proxy that gives each request to the next of several servers. */
export interface RoundRobin {
  /** The URL to use in place of a server's. */
  readonly url: string;
  /** Sets which servers are in turn. One that does not answer stays, as a proxy knows it no better. */
  forwardTo(servers: readonly { readonly url: string }[]): void;
  stop(): Promise<void>;
}

/** Starts a proxy on a free port of 127.0.0.1, for clients that use HTTP/1.1. */
export async function startRoundRobin(): Promise<RoundRobin> {
  const agent = new Agent({ keepAlive: true });
  let urls: string[] = [];
  let turn = 0;
  const pass = (req: IncomingMessage, res: ServerResponse): void => {
    turn += 1;
    const url = urls[turn % urls.length];
    if (url === undefined) {
      res.writeHead(502).end();
      return;
    }
    const { host: _, ...headers } = req.headers;
    const call = request(`${url}${req.url}`, { method: req.method ?? "POST", headers, agent });
    const fail = () => (res.headersSent ? res.destroy() : res.writeHead(502).end());
    call.on("error", fail).on("response", (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on("error", fail).pipe(res);
    });
    req.on("error", () => call.destroy()).pipe(call);
    res.on("close", () => call.destroy());
  };
  const proxy = createServer(pass);
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    forwardTo(servers) {
      urls = servers.map((server) => server.url);
    },
    async stop() {
      proxy.closeAllConnections();
      agent.destroy();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}
