import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import tls from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createListener } from "../../src/http/connection/listener.ts";
import { selfSigned } from "./certificate.ts";
import { type Echo, startEcho, stopEchoes } from "./echo-process.ts";
import { GREETING, getFrame } from "./frames.ts";
import { connectHttp2, post } from "./http2-client.ts";
import { connectRaw, trickle } from "./raw-client.ts";

const CLOSING_POST = "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
afterAll(stopEchoes);

describe("without TLS", () => {
  let echo: Echo;
  beforeAll(async () => {
    echo = await startEcho();
  });

  test("one port answers HTTP/1.1 and HTTP/2", async () => {
    const http1 = await fetch(`http://127.0.0.1:${echo.port}/count`, { method: "POST", body: "hello" });
    expect(await http1.json()).toEqual({ bytes: 5 });

    const session = await connectHttp2(echo.port);
    expect(await post(session, "/count", "hello")).toMatchObject({ status: 200, body: '{"bytes":5}' });
    session.close();
  });

  test("the preface of HTTP/2 may come byte by byte", async () => {
    const client = await connectRaw(echo.port);
    trickle(client, bytesOf(Buffer.concat([GREETING, getFrame("/count")])), 2);
    expect(await client.until('{"bytes":0}')).toContain('{"bytes":0}');
    client.socket.destroy();
  });

  test("a request of HTTP/1.1 may come byte by byte, also one that begins like the preface", async () => {
    const client = await connectRaw(echo.port);
    trickle(client, bytesOf(Buffer.from(CLOSING_POST)), 2);
    expect((await client.closed).text).toMatch(/^HTTP\/1\.1 200 OK\r\n.*\{"bytes":5\}$/s);
  });

  test("a connection serves one request after the other, and pipelined ones in order", async () => {
    const client = await connectRaw(echo.port);
    const posts = ["a", "bb", "ccc"].map((body) => {
      return `POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    });
    client.send(posts.join(""));
    await client.until('{"bytes":3}');
    client.send(CLOSING_POST);
    const { text } = await client.closed;
    expect([...text.matchAll(/\{"bytes":(\d)\}/g)].map(([, bytes]) => bytes)).toEqual(["1", "2", "3", "5"]);
  });

  test("the client is asked for a body only when someone reads it", async () => {
    const client = await connectRaw(echo.port);
    const head = "HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    client.send(`POST /count ${head}`);
    await client.until("HTTP/1.1 100 Continue\r\n\r\n");
    client.send("hello");
    await client.until('{"bytes":5}');
    client.send(`POST /refuse ${head}`);
    const { text } = await client.closed;
    expect(text.match(/100 Continue/g)).toHaveLength(1);
    expect(text).toMatch(/HTTP\/1\.1 401 Unauthorized\r\n.*connection: close/is);
  });
});

describe("with TLS", () => {
  const files = selfSigned();
  let echo: Echo;
  beforeAll(async () => {
    echo = await startEcho({ tls: files });
  });

  test("the client chooses the protocol in the handshake", async () => {
    const session = await connectHttp2(echo.port, { rejectUnauthorized: false }, "https");
    expect(await post(session, "/count", "hello")).toMatchObject({ status: 200, body: '{"bytes":5}' });
    session.close();

    const client = await connectRaw(echo.port, (port) => handshake(port, ["http/1.1"]));
    client.send(CLOSING_POST);
    expect((await client.closed).text).toMatch(/^HTTP\/1\.1 200 OK\r\n.*\{"bytes":5\}$/s);
  });

  test("a client that chooses nothing gets HTTP/1.1", async () => {
    const client = await connectRaw(echo.port, (port) => handshake(port));
    client.send(CLOSING_POST);
    expect((await client.closed).text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });

  test("plain text and old versions of TLS are refused, and others are served after that", async () => {
    const plain = await connectRaw(echo.port);
    plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    expect((await plain.closed).text).not.toContain("HTTP/1.1");
    await expect(
      handshake(echo.port, undefined, { maxVersion: "TLSv1.1", minVersion: "TLSv1" }),
    ).rejects.toThrow();

    const session = await connectHttp2(echo.port, { rejectUnauthorized: false }, "https");
    expect(await post(session, "/count")).toMatchObject({ status: 200 });
    session.close();
    expect(echo.complaints()).toBe("");
  });

  test("a key that does not belong to the certificate is refused at once", () => {
    const tlsFiles = { cert: files.cert, key: selfSigned().key };
    const create = () => createListener({ host: "127.0.0.1", port: 0, tls: tlsFiles, handle: () => {} });
    expect(create).toThrow(/^the TLS key and certificate cannot be used together: .*mismatch/);
  });

  test("so is one of another type, which OpenSSL takes", () => {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const tlsFiles = {
      cert: files.cert,
      key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    };
    const create = () => createListener({ host: "127.0.0.1", port: 0, tls: tlsFiles, handle: () => {} });
    expect(create).toThrow(/^the TLS key and certificate cannot be used together: .*mismatch/);
  });
});

async function handshake(port: number, protocols?: string[], options: tls.ConnectionOptions = {}) {
  const socket = tls.connect({
    port,
    host: "127.0.0.1",
    rejectUnauthorized: false,
    ...(protocols && { ALPNProtocols: protocols }),
    ...options,
  });
  await once(socket, "secureConnect");
  return socket;
}

function bytesOf(bytes: Buffer): Buffer[] {
  return Array.from(bytes, (byte) => Buffer.from([byte]));
}
