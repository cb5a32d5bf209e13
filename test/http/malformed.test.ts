import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { printedRandom } from "../harness/random.ts";
import { type Echo, SHORT_LIMITS, startEcho, stopEchoes } from "./echo-process.ts";
import { dataFrame, frame, GREETING, getFrame, PREFACE, postFrame, resetFrame } from "./frames.ts";
import { answerOf, connectHttp2, open, post } from "./http2-client.ts";
import { connectRaw } from "./raw-client.ts";

/** Code, words, reason and facts of the error in an answer. */
function refusalIn(text: string): unknown[] {
  const { code, message, details } = JSON.parse(text.split("\r\n\r\n")[1] ?? "");
  const [{ debug }] = details;
  return [code, message, debug.reason, debug.metadata];
}

const MALFORMED = ["invalid_argument", "malformed HTTP request", "ERROR_REASON_BODY_MALFORMED", {}];

/** What is malformed ends a connection before any of the limits, which are longer. */
const MAX_MS = 20_000;
const PATIENT_MS = 40_000;

let echo: Echo;
beforeAll(async () => {
  const limits = {
    ...SHORT_LIMITS,
    headersTimeoutMs: PATIENT_MS,
    keepAliveTimeoutMs: PATIENT_MS,
    idleSessionMs: PATIENT_MS,
    bodyIdleMs: PATIENT_MS,
  };
  echo = await startEcho({ limits });
});
afterEach(async () => {
  const session = await connectHttp2(echo.port);
  expect(await post(session, "/active")).toMatchObject({ status: 200, body: '{"active":1}' });
  session.close();
  expect(echo.complaints()).toBe("");
});
afterAll(stopEchoes);

async function answerTo(bytes: string | Buffer): Promise<string> {
  const client = await connectRaw(echo.port);
  client.send(bytes);
  return (await client.closed).text;
}

describe("on HTTP/1", () => {
  test.each([
    ["no HTTP at all", "NONSENSE\r\n\r\n"],
    ["a bad version", "GET / HTTP/9.9\r\nHost: a\r\n\r\n"],
    ["a header without a colon", "GET / HTTP/1.1\r\nHost: a\r\nbroken\r\n\r\n"],
    ["two lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na"],
    [
      "a length and chunks",
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
    ["no host", "GET / HTTP/1.1\r\n\r\n"],
    ["another host in the target", "GET http://b/count HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["a user in the target", "GET http://a@a/count HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["a target of another scheme", "GET ftp://a/count HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["an impossible host", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"],
    ["a broken chunk", "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n"],
    ["TLS", Buffer.from("16030100a5010000a10303", "hex")],
  ])("%s is answered 400 with a JSON body, and the connection closed", async (_, bytes) => {
    const text = await answerTo(bytes);
    expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(text).toMatch(/\r\ncontent-type: application\/json\r\n/i);
    expect(text).toMatch(/\r\nconnection: close\r\n/i);
    expect(refusalIn(text)).toEqual(MALFORMED);
  });

  test.each([
    ["two hosts", "Host", "Host: b"],
    ["one host twice", "Host", "X: b\r\nhOsT: a"],
    ["two authorizations", "Authorization", "Authorization: Bearer a\r\nAuthorization: Bearer b"],
    ["two idempotency keys", "Idempotency-Key", "idempotency-key: a\r\nX: b\r\nIdempotency-Key: a"],
  ])("%s are answered 400 with the name of the header, and the connection closed", async (_, name, lines) => {
    const text = await answerTo(`GET /count HTTP/1.1\r\nHost: a\r\n${lines}\r\n\r\n`);
    expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(text).toMatch(/\r\nconnection: close\r\n/i);
    const [code, message, ...rest] = MALFORMED;
    expect(refusalIn(text)).toEqual([code, `${message}: it has more than one header ${name}`, ...rest]);
  });

  test("a target in absolute form is that of its path", async () => {
    for (const target of ["http://a/count?x=http://b/", "HTTP://A/count", "https://a/count"]) {
      const rest = "HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
      expect(await answerTo(`POST ${target} ${rest}`)).toMatch(/^HTTP\/1\.1 200 OK\r\n.*"bytes":2/s);
    }
  });

  test("headers over 16 KiB are answered 431", async () => {
    const text = await answerTo(`GET / HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(17_000)}\r\n\r\n`);
    expect(text).toMatch(/^HTTP\/1\.1 431 /);
    expect(refusalIn(text)).toEqual([
      "resource_exhausted",
      "the request headers are too large",
      "ERROR_REASON_BODY_TOO_LARGE",
      { limit_bytes: "16384" },
    ]);
  });

  test("an unknown expectation is answered 417", async () => {
    const text = await answerTo("POST / HTTP/1.1\r\nHost: a\r\nExpect: more\r\nContent-Length: 9\r\n\r\n");
    expect(text).toMatch(/^HTTP\/1\.1 417 /);
    expect(refusalIn(text)).toEqual([
      "unimplemented",
      "the expectation of the request is not supported",
      "ERROR_REASON_TRANSPORT_UNSUPPORTED",
      { allowed: "100-continue" },
    ]);
  });

  test("a transfer coding but chunked is answered 501", async () => {
    const post = (codings: string) =>
      `POST /count HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${codings}\r\n\r\n2\r\nhi\r\n0\r\n\r\n`;
    expect(await answerTo(post("Transfer-Encoding: Chunked"))).toMatch(/^HTTP\/1\.1 200 OK\r\n.*"bytes":2/s);
    for (const codings of [
      "Transfer-Encoding: gzip, chunked",
      "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
    ]) {
      const text = await answerTo(post(codings));
      expect(text).toMatch(/^HTTP\/1\.1 501 /);
      expect(refusalIn(text)).toEqual([
        "unimplemented",
        expect.stringContaining("transfer coding"),
        "ERROR_REASON_TRANSPORT_UNSUPPORTED",
        { allowed: "chunked" },
      ]);
    }
  });

  test.each([
    ["to a host", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"],
    ["that sends at once what is for the other end", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n\x16\x03\x01"],
    ["with a body", "CONNECT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"],
  ])("a tunnel %s is answered 405, and the connection closed", async (_, bytes) => {
    const text = await answerTo(bytes);
    expect(text).toMatch(/^HTTP\/1\.1 405 Method Not Allowed\r\n/);
    expect(text).toMatch(/\r\nconnection: close\r\n/i);
    expect(text).toMatch(/\r\nallow: POST\r\n/i);
    expect(refusalIn(text)).toEqual([
      "unimplemented",
      "the server opens no tunnels",
      "ERROR_REASON_TRANSPORT_UNSUPPORTED",
      { allowed: "POST" },
    ]);
  });

  test("a tunnel that is asked for behind a request is not taken for its response", async () => {
    const client = await connectRaw(echo.port);
    client.send("GET /slow?ms=60000 HTTP/1.1\r\nHost: a\r\n\r\nCONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n");
    expect((await client.closed).text).toBe("");
  });

  test("a client that resets the connection behind its tunnel leaves nothing behind", async () => {
    const client = await connectRaw(echo.port);
    client.send("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n");
    client.socket.resetAndDestroy();
    await client.closed;
    expect(await answerTo("GET /count HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")).toMatch(
      /^HTTP\/1\.1 200 /,
    );
  });

  test("a probe of HTTP/1.0 needs no host", async () => {
    expect(await answerTo("GET /count HTTP/1.0\r\n\r\n")).toMatch(/^HTTP\/1\.1 200 .*\{"bytes":0\}$/s);
  });

  test("clients that go away with pipelined requests leave nothing behind", async () => {
    const client = await connectRaw(echo.port);
    client.send("GET /slow?ms=60000 HTTP/1.1\r\nHost: a\r\n\r\n".repeat(5));
    for (let count = 0; count < 5; count++) await echo.next("slow");
    client.socket.resetAndDestroy();
    await client.closed;
  });
});

describe("on HTTP/2", () => {
  test.each(["Authorization", "Idempotency-Key"])("a second header %s is refused", async (name) => {
    const client = await connectRaw(echo.port);
    const field = name.toLowerCase();
    const more = [field, "x", field].map((each) => [each, "a"] as const);
    client.send(Buffer.concat([GREETING, getFrame("/count", 1, more)]));
    await client.until(`it has more than one header ${name}`);
    client.socket.destroy();
    await client.closed;
  });

  test("half a preface is no request", async () => {
    const client = await connectRaw(echo.port);
    client.socket.end(PREFACE.subarray(0, 12));
    expect((await client.closed).text).toMatch(/^HTTP\/1\.1 400 /);
  });

  test.each([
    ["no frame", Buffer.from("GET / HTTP/1.1\r\nHost: a\r\n\r\n")],
    ["a frame that is too large", frame(0, 0, 1, Buffer.alloc(20_000))],
    ["a header block that cannot be read", frame(1, 5, 1, Buffer.alloc(50, 0xff))],
    ["a frame of a stream that does not exist", Buffer.concat([frame(4, 0, 0), dataFrame("some")])],
    [
      "a request on a stream of the server",
      Buffer.concat([frame(4, 0, 0), frame(1, 5, 2, Buffer.from([0x82]))]),
    ],
  ])("%s after the preface ends the connection", async (_, bytes) => {
    const client = await connectRaw(echo.port);
    client.send(Buffer.concat([PREFACE, bytes]));
    expect((await client.closed).ms).toBeLessThan(MAX_MS);
  });

  test.each([
    ["another host", { ":authority": "a", host: "b" }, 400],
    ["the same host", { ":authority": "a", host: "A" }, 200],
    ["a host alone", { host: "a" }, 200],
  ])("%s next to the authority is answered %s", async (_, headers, status) => {
    const session = await connectHttp2(echo.port);
    const stream = open(session, "/count", headers);
    stream.end();
    expect((await answerOf(stream)).status).toBe(status);
    session.close();
  });

  test("headers over 16 KiB are refused, also before the client knows the limit", async () => {
    const session = await connectHttp2(echo.port);
    const early = open(session, "/count", { x: "x".repeat(17_000) });
    early.end();
    expect(await answerOf(early)).toMatchObject({ status: 431 });
    const late = open(session, "/count", { x: "x".repeat(17_000) });
    late.end();
    expect((await answerOf(late)).status).not.toBe(200);
    session.destroy();
  });

  test("a tunnel is refused, also when its client keeps it open", async () => {
    const session = await connectHttp2(echo.port);
    const stream = session.request({ ":method": "CONNECT", ":authority": "a" });
    stream.on("error", () => {});
    expect(await answerOf(stream)).toMatchObject({ status: 405 });
    session.close();
  });

  test("a client that opens and resets streams without end is cut off", async () => {
    const client = await connectRaw(echo.port);
    client.send(GREETING);
    for (let stream = 1; stream < 6_000; stream += 2) {
      client.send(Buffer.concat([postFrame("/slow?ms=60000", stream), resetFrame(8, stream)]));
    }
    expect((await client.closed).ms).toBeLessThan(MAX_MS);
  });
});

describe("random bytes", () => {
  const generator = printedRandom("malformed requests");

  test("never harm the server", async () => {
    const random = (bound: number) => generator.integer(0, bound - 1);
    const whole = Buffer.concat([GREETING, postFrame("/count"), dataFrame("some", true), getFrame("/count")]);
    const text = Buffer.from(
      "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n0\r\n\r\n",
    );
    const bytes = (length: number) => Buffer.from(Array.from({ length }, () => random(256)));
    const damage = (original: Buffer) => {
      const copy = Buffer.from(original);
      for (let count = 0; count < 3; count++) copy[random(copy.length)] = random(256);
      return copy;
    };
    const kinds = [
      () => bytes(1 + random(200)),
      () => Buffer.concat([PREFACE.subarray(0, 1 + random(PREFACE.length)), bytes(random(100))]),
      () => Buffer.concat([GREETING, frame(random(10), random(256), random(256), bytes(random(100)))]),
      () => whole.subarray(0, 1 + random(whole.length)),
      () => damage(whole),
      () => damage(text),
      () => Buffer.concat([text, bytes(random(100))]),
    ];
    await Promise.all(
      Array.from({ length: 140 }, async (_, index) => {
        // Chosen before the connection is there, so that the order of the connections changes nothing.
        const sent = kinds[index % kinds.length]?.() ?? text;
        const reset = random(3) === 0;
        const client = await connectRaw(echo.port);
        client.send(sent);
        if (reset) client.socket.resetAndDestroy();
        else client.socket.end();
        await client.closed;
      }),
    );
  });
});
