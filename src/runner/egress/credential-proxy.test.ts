import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer } from "node:https";
import { type AddressInfo, connect as connectTcp, type Server, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { placeholderOf } from "../../domain/policy/proxied-secret/credential-proxy.ts";
import { createCredentialAuthority } from "./credential-authority.ts";
import { type CredentialProxy, createCredentialProxy, trustedAuthorities } from "./credential-proxy.ts";
import { createEgressProxy } from "./egress-proxy.ts";
import { egressDecider } from "./egress-rules.ts";

const VALUE = "Bearer Rumpelstiltskin-7b1e";
const TOKEN = "Rumpelstiltskin-7b1e";
const ID = "01900000-0000-7000-8000-00000000000a";
const MIB = 2 ** 20;

const servers: { close(): unknown }[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function listening(server: Server): Promise<number> {
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

type Answer = (req: IncomingMessage, res: ServerResponse) => unknown;

/** Starts a host that serves every name. Its certificates come from a new authority that was created at `madeAt`. */
async function startHost(answer: Answer, madeAt = Date.now(), nameOf = (name: string) => name) {
  const authority = await createCredentialAuthority(madeAt);
  const requests: IncomingMessage[] = [];
  const server = createServer({
    SNICallback: (name, callback) =>
      void authority.contextFor(nameOf(name)).then((context) => callback(null, context), callback),
  }).on("request", (req: IncomingMessage, res: ServerResponse) => {
    requests.push(req);
    answer(req, res);
  });
  return { port: await listening(server), requests, certificate: authority.certificate };
}

/** Answers with the received request: its authorization in a header, everything in the body. */
const echo: Answer = async (req, res) => {
  const body = await text(req);
  res.setHeader("X-Echo", req.headers.authorization ?? "none");
  res.end(JSON.stringify({ url: req.url, headers: req.rawHeaders, body }));
};

interface Proxied {
  readonly port: number;
  readonly credentials: CredentialProxy;
  /** Opens a tunnel to a host. */
  tunnel(host: string, port: number): Promise<Socket>;
  /** Opens a TLS connection to a host through a tunnel. */
  secure(host: string, port: number, options?: ConnectionOptions): Promise<TLSSocket>;
  /** Sends a request to a.example through a tunnel and returns everything that is received until the end. */
  send(port: number, head: string): Promise<string>;
}

async function startProxy(hosts: readonly string[], certificate: string, header = "Authorization") {
  const secret = { secretId: ID, value: VALUE, targetHosts: hosts, header };
  const credentials = await createCredentialProxy([secret], trustedAuthorities([certificate]), Date.now());
  const ports = hosts.map((host) => Number(host.split(":")[1]));
  const rules = ["a.example", "b.example"].map((host) => ({ name: "hosts[0]", host, ports }));
  const loopback = [{ address: "127.0.0.1", prefix: 32, family: "ipv4" }] as const;
  const proxy = createEgressProxy({
    credentials,
    decide: egressDecider(rules, loopback, async () => ["127.0.0.1"]),
    onConnection: () => undefined,
  });
  const port = await listening(proxy);
  const proxied: Proxied = {
    port,
    credentials,
    async tunnel(host, hostPort) {
      const socket = connectTcp(port, "127.0.0.1");
      socket.write(`CONNECT ${host}:${hostPort} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
      await once(socket, "readable");
      expect(String(socket.read())).toMatch(/^HTTP\/1.1 200 /);
      return socket;
    },
    async secure(host, hostPort, options = {}) {
      const socket = await proxied.tunnel(host, hostPort);
      const ca = [credentials.certificate, certificate];
      const secured = connectTls({ socket, servername: host, ca, ...options });
      await once(secured, "secureConnect");
      return secured;
    },
    async send(hostPort, head) {
      const socket = await proxied.secure("a.example", hostPort);
      socket.write(head.replaceAll("\n", "\r\n"));
      return text(socket);
    },
  };
  return proxied;
}

async function start(answer: Answer = echo, madeAt?: number, nameOf?: (name: string) => string) {
  const host = await startHost(answer, madeAt, nameOf);
  return { host, proxy: await startProxy([`a.example:${host.port}`], host.certificate) };
}

const get = (port: number, more = "", path = "/") =>
  `GET ${path} HTTP/1.1\nHost: a.example:${port}\nConnection: close\n${more}\n`;

describe("a request to a host of the secret", () => {
  test("carries the value once in the place of what the work sends, and the answer does not have it", async () => {
    const { host, proxy } = await start();
    const own = "authorization: mine\nAUTHORIZATION: mine too\nX-Kept: 1\nRange: bytes=0-1\n";
    const answer = await proxy.send(host.port, get(host.port, own));
    const [got] = host.requests;
    const names = got?.rawHeaders.filter((name) => /^authorization$/i.test(name));
    expect([names, got?.headers.authorization]).toEqual([["Authorization"], VALUE]);
    expect(got?.headers).toMatchObject({ "x-kept": "1", host: `a.example:${host.port}` });
    expect(got?.headers).toMatchObject({ "accept-encoding": "identity" });
    expect(got?.headers.range).toBeUndefined();
    expect(answer).toMatch(/^HTTP\/1.1 200 /);
    expect(answer).toContain("X-Echo: ***\r\n");
    expect(answer).toContain('"Authorization","***"');
    expect(answer).not.toContain(TOKEN);
  });

  test("carries it where the work's header has the placeholder", async () => {
    const { host, proxy } = await start();
    await proxy.send(host.port, get(host.port, `Authorization: token ${placeholderOf(ID)}!\n`));
    expect(host.requests[0]?.headers.authorization).toBe(`token ${VALUE}!`);
  });

  test("keeps its body, and others of the connection their order", async () => {
    const { host, proxy } = await start();
    const post = `POST /one HTTP/1.1\nHost: a.example:${host.port}\nTransfer-Encoding: chunked\n\n3\nabc\n0\n\n`;
    const answer = await proxy.send(host.port, post + get(host.port, "", "/two"));
    expect(host.requests.map(({ url }) => url)).toEqual(["/one", "/two"]);
    expect(answer).toMatch(/"url":"\/one"[\s\S]*"body":"abc"[\s\S]*"url":"\/two"/);
  });
});

describe("no value goes", () => {
  test.each<[string, (port: number) => string, RegExp]>([
    ["where Host is another", (port) => `GET / HTTP/1.1\nHost: b.example:${port}\n\n`, /^HTTP\/1.1 421 /],
    ["where Host has another port", () => "GET / HTTP/1.1\nHost: a.example\n\n", /^HTTP\/1.1 421 /],
    [
      "where there are two of Host",
      (port) => `GET / HTTP/1.1\nHost: a.example:${port}\nHost: b.example\n\n`,
      /^HTTP\/1.1 4(21|00) /,
    ],
    ["where there is no Host", () => "GET / HTTP/1.0\n\n", /^HTTP\/1.1 421 /],
    [
      "where the request names a whole address",
      (port) => get(port, "", `https://b.example:${port}/`),
      /^HTTP\/1.1 400 /,
    ],
    [
      "to another protocol",
      (port) => `GET / HTTP/1.1\nHost: a.example:${port}\nConnection: upgrade\nUpgrade: websocket\n\n`,
      /^HTTP\/1.1 501 /,
    ],
  ])("%s", async (_, request, refused) => {
    const { host, proxy } = await start();
    expect(await proxy.send(host.port, request(host.port))).toMatch(refused);
    expect(host.requests).toEqual([]);
  });

  test.each<[string, ConnectionOptions]>([
    ["where the name of the certificate is another", { servername: "b.example" }],
    ["where there is no such name", { servername: "" }],
    ["to clients of HTTP/2 alone", { ALPNProtocols: ["h2"] }],
  ])("%s", async (_, options) => {
    const { host, proxy } = await start();
    const socket = await proxy.tunnel("a.example", host.port);
    const secured = connectTls({ socket, rejectUnauthorized: false, ...options });
    secured.on("error", () => undefined);
    secured.write(get(host.port).replaceAll("\n", "\r\n"));
    await new Promise((resolve) => secured.once("close", resolve));
    expect(host.requests).toEqual([]);
  });

  test("to another host of the same address, whose tunnel is left as it is", async () => {
    const { host, proxy } = await start();
    const socket = await proxy.secure("b.example", host.port, { ca: host.certificate });
    socket.write(`GET / HTTP/1.1\r\nHost: a.example:${host.port}\r\nConnection: close\r\n\r\n`);
    expect(await text(socket)).toContain("X-Echo: none");
  });

  test("over plain HTTP", async () => {
    const plain = await listening(
      createHttpServer((req, res) => res.end(req.headers.authorization ?? "none")),
    );
    const proxy = await startProxy([`a.example:${plain}`], (await startHost(echo)).certificate);
    const socket = connectTcp(proxy.port, "127.0.0.1");
    socket.write(
      `GET http://a.example:${plain}/ HTTP/1.1\r\nHost: a.example:${plain}\r\nConnection: close\r\n\r\n`,
    );
    expect(await text(socket)).toMatch(/\r\n\r\n.*none/s);
    // Nor if the work expects HTTPS there, since the host does not speak TLS.
    expect(await proxy.send(plain, get(plain))).toMatch(/^HTTP\/1.1 502 /);
  });

  test.each<[string, number | undefined, ((name: string) => string) | undefined, boolean]>([
    ["has expired", Date.parse("2020-01-01"), undefined, true],
    ["is of another name", undefined, () => "c.example", true],
    ["nobody has signed who is trusted", undefined, undefined, false],
  ])("to a host whose certificate %s", async (_, madeAt, nameOf, isTrusted) => {
    const host = await startHost(echo, madeAt, nameOf);
    const other = (await startHost(echo)).certificate;
    const proxy = await startProxy([`a.example:${host.port}`], isTrusted ? host.certificate : other);
    const answer = await proxy.send(host.port, get(host.port));
    expect(answer).toMatch(/^HTTP\/1.1 502 [\s\S]*the host is not reached: .*certificate|altnames/i);
    expect(host.requests).toEqual([]);
  });
});

describe("an answer does not show the value", () => {
  test("in the line of its status, in base64, or cut into pieces", async () => {
    const { host, proxy } = await start(async (_, res) => {
      res.writeHead(200, `OK ${TOKEN}`, { Location: `https://c.example/?token=${TOKEN}` });
      for (const piece of ["[", TOKEN.slice(0, 5), TOKEN.slice(5, 9), TOKEN.slice(9), "] "]) {
        res.write(piece);
        await nextTurn();
      }
      res.end(`${Buffer.from(`x-access-token:${TOKEN}`).toString("base64")} ${TOKEN.toLowerCase()} end`);
    });
    const answer = await proxy.send(host.port, get(host.port));
    expect(answer).toMatch(/^HTTP\/1.1 200 OK \*\*\*\r\n/);
    expect(answer).toContain("Location: https://c.example/?token=***\r\n");
    expect(answer.replace(/\r\n[0-9a-f]+\r\n/g, "")).toMatch(/\[\*\*\*\] [\s\S]*\*\*\* end/);
    expect(answer.toLowerCase()).not.toContain(TOKEN.toLowerCase());
    expect(answer).not.toContain(Buffer.from(TOKEN).toString("base64").slice(4, -6));
  });

  test.each([
    ["Content-Encoding", "gzip"],
    ["Transfer-Encoding", "gzip, chunked"],
    ["Content-Type", 'text/plain; a=b; charset="UTF-16le"'],
  ])("where it is encoded though it should not be, by %s: the work gets none", async (name, coding) => {
    const { host, proxy } = await start((_, res) => {
      res.writeHead(200, { [name]: coding });
      res.end(name === "Content-Type" ? Buffer.from(TOKEN, "utf16le") : gzipSync(TOKEN));
    });
    const answer = await proxy.send(host.port, get(host.port, "Accept-Charset: utf-16\n"));
    expect(answer).toMatch(/^HTTP\/1.1 502 [\s\S]*the host's answer is encoded \((gzip|UTF-16le)\)/);
    expect(host.requests[0]?.headers).not.toHaveProperty("accept-charset");
  });

  test("where it has no body, whose headers stay", async () => {
    const { host, proxy } = await start((_, res) => res.writeHead(200, { "Content-Length": 12 }).end());
    const head = get(host.port).replace("GET", "HEAD");
    expect(await proxy.send(host.port, head)).toContain("Content-Length: 12\r\n");
  });
});

test("a large answer is read no faster than the work takes it", async () => {
  const size = 96 * MIB;
  let written = 0;
  const { host, proxy } = await start(async (_, res) => {
    const piece = Buffer.alloc(MIB, "a");
    for (; written < size; written += MIB) if (!res.write(piece)) await once(res, "drain");
    res.end();
  });
  const socket = await proxy.secure("a.example", host.port);
  socket.write(get(host.port).replaceAll("\n", "\r\n"));
  let [received, ahead] = [0, 0];
  for await (const bytes of socket) {
    received += bytes.length;
    ahead = Math.max(ahead, written - received);
    // Read slowly: give the other sockets many turns before the next chunk.
    if (received < 8 * MIB) for (let turn = 0; turn < 20; turn++) await nextTurn();
  }
  expect(received).toBeGreaterThanOrEqual(size);
  expect(ahead).toBeLessThan(48 * MIB);
});

describe("the authority", () => {
  let certificate: X509Certificate;
  beforeEach(async () => {
    certificate = new X509Certificate((await createCredentialAuthority(Date.now())).certificate);
  });

  test("signs for nobody else, has no number twice, and is written with nothing but itself", async () => {
    expect(certificate.ca).toBe(true);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    const other = new X509Certificate((await createCredentialAuthority(Date.now())).certificate);
    expect(other.serialNumber).not.toBe(certificate.serialNumber);
    expect(other.verify(certificate.publicKey)).toBe(false);
    // The number has 16 bytes; a shared buffer would add kilobytes of this process's memory.
    expect(certificate.serialNumber).toHaveLength(32);
    expect(certificate.raw.length).toBeLessThan(600);
  });
});
