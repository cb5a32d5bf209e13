import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, expect, test } from "@jest/globals";
import { createEgressProxy } from "./egress-proxy.ts";
import { type EgressRule, egressDecider } from "./egress-rules.ts";
import type { EgressConnection } from "./forward-request.ts";

const servers: { close(): unknown }[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function listening<S extends Pick<Server, "listen" | "once" | "address" | "close">>(
  server: S,
  host = "127.0.0.1",
  port = 0,
): Promise<number> {
  servers.push(server);
  server.listen(port, host);
  await once(server as never, "listening");
  return (server.address() as AddressInfo).port;
}

const LOOPBACK = [{ address: "127.0.0.0", prefix: 8, family: "ipv4" }] as const;

/** Starts a proxy that resolves names with `resolve`. */
async function proxyWith(
  rules: readonly EgressRule[],
  resolve: (name: string) => string[],
  networks: readonly { address: string; prefix: number; family: "ipv4" }[] = LOOPBACK,
) {
  const seen: EgressConnection[] = [];
  const ended = Promise.withResolvers<EgressConnection>();
  const proxy = createEgressProxy({
    decide: egressDecider(rules, networks, async (name) => resolve(name)),
    onConnection(connection) {
      seen.push(connection);
      ended.resolve(connection);
    },
  });
  const port = await listening(proxy);
  return { port, seen, first: ended.promise, send: (request: string) => send(port, request) };
}

/** Sends bytes and returns everything that is received until the other side ends. */
async function send(port: number, request: string): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.write(request);
  const answer = text(socket);
  const received = await answer;
  socket.destroy();
  return received;
}

/** Starts a host that answers with the received request. */
async function echo(host?: string, port?: number) {
  const answer = async (req: IncomingMessage, res: { end(body: string): void }) => {
    const body = await text(req);
    res.end(
      JSON.stringify({ host: req.headers.host, url: req.url, method: req.method, body, raw: req.rawHeaders }),
    );
  };
  return listening(
    createServer((req, res) => void answer(req, res)),
    host,
    port,
  );
}

const ruleFor = (port: number): EgressRule => ({ name: "hosts[0]", host: "a.example", ports: [port] });

test("plain HTTP is passed on with its body, and without what is between client and proxy", async () => {
  const port = await echo();
  const { send, first } = await proxyWith([ruleFor(port)], () => ["127.0.0.1"]);
  const answer = await send(
    `POST http://a.example:${port}/x?y=1 HTTP/1.1\r\nHost: other.example\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nX-Kept: 2\r\nProxy-Authorization: Basic a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
  );
  expect(answer).toMatch(/^HTTP\/1.1 200 /);
  const got = JSON.parse(/\{.*\}/.exec(answer)?.[0] ?? "{}");
  expect(got).toMatchObject({ host: `a.example:${port}`, url: "/x?y=1", method: "POST", body: "abc" });
  expect(got.raw.join()).toContain("X-Kept,2");
  expect(got.raw.join()).not.toMatch(/X-Hop|Proxy-Auth|other\.example/);
  expect(await first).toMatchObject({ host: "a.example", port, rule: "hosts[0]", refusal: undefined });
  expect((await first).sentBytes).toBeGreaterThan(50);
  expect((await first).receivedBytes).toBeGreaterThan(50);
});

test("a tunnel passes bytes both ways, also after one side has ended, and counts them", async () => {
  const host = createTcpServer({ allowHalfOpen: true }, async (socket) => {
    socket.end(`got ${await text(socket)}`);
  });
  const port = await listening(host as never);
  const proxy = await proxyWith([ruleFor(port)], () => ["127.0.0.1"]);
  const socket = connect({ port: proxy.port, host: "127.0.0.1", allowHalfOpen: true });
  socket.end(`CONNECT a.example:${port} HTTP/1.1\r\nHost: a.example\r\n\r\nhello`);
  expect(await text(socket)).toBe("HTTP/1.1 200 Connection established\r\n\r\ngot hello");
  expect(await proxy.first).toMatchObject({ sentBytes: 5, receivedBytes: 9 });
});

test("a refused tunnel and a refused request say which policy decides", async () => {
  const { send, seen } = await proxyWith([], () => ["127.0.0.1"]);
  for (const request of [
    "CONNECT a.example:443 HTTP/1.1\r\n\r\n",
    "GET http://a.example:443/ HTTP/1.1\r\nHost: a\r\n\r\n",
  ]) {
    const answer = await send(request);
    expect(answer).toMatch(/^HTTP\/1.1 403 Forbidden\r\n/);
    expect(answer).toContain(
      "a.example:443 is not reached: the organization's policy `egress` does not allow it",
    );
  }
  const refused = {
    host: "a.example",
    port: 443,
    rule: "",
    refusal: "not_allowed",
    sentBytes: 0,
    receivedBytes: 0,
  };
  expect(seen).toEqual([refused, refused]);
});

const testOnLinux = process.platform === "linux" ? test : test.skip; // Elsewhere 127.0.0.1 is the only address of the loopback.

testOnLinux(
  "a name is looked up once for a connection, which goes to the address that was checked",
  async () => {
    const port = await echo("127.0.0.1");
    const private_ = createServer((_, res) => res.end("private"));
    await listening(private_, "127.0.0.2", port);
    // Each look-up of the name returns the other address: allowed, refused, allowed...
    let asked = 0;
    const resolve = () => [asked++ % 2 === 0 ? "127.0.0.1" : "127.0.0.2"];
    const { send } = await proxyWith([ruleFor(port)], resolve, [
      { address: "127.0.0.1", prefix: 32, family: "ipv4" },
    ]);
    const get = `GET http://a.example:${port}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
    expect(await send(get)).toMatch(/^HTTP\/1.1 200 /);
    expect(asked).toBe(1);
    expect(await send(get)).toMatch(/^HTTP\/1.1 403 [\s\S]*its address is not public/);
    const tunnel = `CONNECT a.example:${port} HTTP/1.1\r\n\r\n${get.replace(`http://a.example:${port}`, "")}`;
    expect(await send(tunnel)).toMatch(/200 Connection established[\s\S]*200 OK/);
    expect(asked).toBe(3);
    expect(await send(tunnel)).toMatch(/^HTTP\/1.1 403 /);
  },
);

test("a redirect is passed on and not followed", async () => {
  const port = await listening(
    createServer((_, res) => res.writeHead(302, { Location: "http://169.254.169.254/latest" }).end()),
  );
  const { send, seen } = await proxyWith([ruleFor(port)], () => ["127.0.0.1"]);
  const answer = await send(`GET http://a.example:${port}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  expect(answer).toMatch(/^HTTP\/1.1 302 [\s\S]*Location: http:\/\/169\.254\.169\.254\/latest/);
  expect(seen.map(({ host }) => host)).toEqual(["a.example"]);
  expect(
    await send("GET http://169.254.169.254/latest HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
  ).toMatch(/^HTTP\/1.1 403 /);
});

test.each([
  ["an address without a host", "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n"],
  ["https in the clear", "GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n"],
  ["a tunnel without a port", "CONNECT a.example HTTP/1.1\r\n\r\n"],
  ["a tunnel to no host", "CONNECT a/b:443 HTTP/1.1\r\n\r\n"],
])("%s is no request of a proxy", async (_, request) => {
  const { send, seen } = await proxyWith([], () => []);
  expect(await send(request)).toMatch(/^HTTP\/1.1 400 /);
  expect(seen).toEqual([]);
});

testOnLinux("a host that takes no connection is said to be unreachable", async () => {
  // The port is in use on 127.0.0.1, so no other program gets it on another address.
  const port = await echo();
  const { send } = await proxyWith([ruleFor(port)], () => ["127.0.0.9"]);
  const get = `GET http://a.example:${port}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
  expect(await send(get)).toMatch(/^HTTP\/1.1 502 [\s\S]*the host is not reached/);
  expect(await send(`CONNECT a.example:${port} HTTP/1.1\r\n\r\n`)).toMatch(/^HTTP\/1.1 502 /);
});

test.each([
  ["a status below all", "HTTP/1.1 099 x"],
  ["a control character in its reason", "HTTP/1.1 200 a\x01b"],
  ["a protocol that nobody asked for", "HTTP/1.1 101 x\r\nUpgrade: x\r\nConnection: upgrade"],
])("an answer with %s is no answer, and harms nobody", async (_, line) => {
  const port = await listening(
    createTcpServer((socket) => socket.once("data", () => socket.end(`${line}\r\n\r\n`))) as never,
  );
  const { send } = await proxyWith([ruleFor(port)], () => ["127.0.0.1"]);
  const get = `GET http://a.example:${port}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
  expect(await send(get)).toMatch(/^HTTP\/1.1 502 Bad Gateway\r\n/);
});

test("a header that ends the body is kept, whatever the client says of it", async () => {
  const port = await echo();
  const { send } = await proxyWith([ruleFor(port)], () => ["127.0.0.1"]);
  const inner = "GET /inner HTTP/1.1\r\nHost: b\r\n\r\n";
  const answer = await send(
    `GET http://a.example:${port}/ HTTP/1.1\r\nHost: a\r\nConnection: close, Content-Length\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
  );
  expect(JSON.parse(/\{.*\}/.exec(answer)?.[0] ?? "{}")).toMatchObject({ url: "/", body: inner });
});

test("no connection to a host outlives the work: not one that the client has half closed", async () => {
  const connected = Promise.withResolvers<Socket>();
  // The host reads to the end and never ends its own side.
  const host = createTcpServer({ allowHalfOpen: true }, (socket) =>
    connected.resolve(socket.on("error", () => undefined)),
  );
  const port = await listening(host as never);
  const clients: Socket[] = [];
  const over = Promise.withResolvers<EgressConnection>();
  const proxy = createEgressProxy({
    decide: egressDecider([ruleFor(port)], LOOPBACK, async () => ["127.0.0.1"]),
    onConnection: over.resolve,
  });
  proxy.on("connection", (socket: Socket) => clients.push(socket));
  const client = connect({ port: await listening(proxy), host: "127.0.0.1", allowHalfOpen: true });
  client.end(`CONNECT a.example:${port} HTTP/1.1\r\nHost: a.example\r\n\r\nhello`);
  const socket = await connected.promise;
  expect(await text(socket)).toBe("hello");
  // Close as Egress does at the end of the work.
  proxy.close();
  for (const each of clients) each.destroy();
  expect(await over.promise).toMatchObject({ port, sentBytes: 5 });
  client.destroy();
  socket.destroy();
});

test("a client that has gone before its host is known has no connection opened", async () => {
  const asked = Promise.withResolvers<void>();
  const found = Promise.withResolvers<string[]>();
  const connections: Socket[] = [];
  const host = createTcpServer((socket) => connections.push(socket));
  const port = await listening(host as never);
  const proxy = createEgressProxy({
    decide: egressDecider([ruleFor(port)], LOOPBACK, () => {
      asked.resolve();
      return found.promise;
    }),
    onConnection: () => undefined,
  });
  const gone = new Promise((resolve) =>
    proxy.once("connection", (socket: Socket) => socket.once("close", resolve)),
  );
  const client = connect({ port: await listening(proxy), host: "127.0.0.1" });
  client.write(`GET http://a.example:${port}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
  await asked.promise;
  client.destroy();
  await gone;
  found.resolve(["127.0.0.1"]);
  await nextTurn();
  // A connection that the proxy had opened would be accepted before this one.
  const accepted = once(host, "connection");
  const other = connect({ port, host: "127.0.0.1" });
  await once(other, "connect");
  await accepted;
  expect(connections.map(({ remotePort }) => remotePort)).toEqual([other.localPort]);
  for (const each of [other, ...connections]) each.destroy();
});

test("requests that a client sends at once are passed on one after another, and not without end", async () => {
  let open = 0;
  let most = 0;
  const port = await listening(
    createServer((_, res) => {
      most = Math.max(most, ++open);
      res.once("close", () => open--);
      res.end("ok");
    }),
  );
  const silent = await listening(createServer(() => undefined));
  const { send, port: proxyPort } = await proxyWith([ruleFor(port), ruleFor(silent)], () => ["127.0.0.1"]);
  const get = (more: string) => `GET http://a.example:${port}/ HTTP/1.1\r\nHost: a\r\n${more}\r\n`;
  const answers = await send(get("").repeat(9) + get("Connection: close\r\n"));
  expect(answers.match(/HTTP\/1.1 200 OK/g)).toHaveLength(10);
  expect(most).toBe(1);
  const client = connect({ port: proxyPort, host: "127.0.0.1" }).on("error", () => undefined);
  client.write(get("").replaceAll(String(port), String(silent)).repeat(101));
  await once(client, "close");
});
