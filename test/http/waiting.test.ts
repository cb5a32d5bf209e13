import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { selfSigned } from "./certificate.ts";
import { type Echo, SHORT_LIMITS, startEcho, stopEchoes } from "./echo-process.ts";
import { frame, GREETING } from "./frames.ts";
import { connectHttp2, post } from "./http2-client.ts";
import { connectRaw, trickle } from "./raw-client.ts";

const TOO_SLOW =
  /^HTTP\/1\.1 408 Request Timeout\r\n.*"the request headers arrived too slowly".*"ERROR_REASON_DEADLINE_EXCEEDED"/s;
const GET = "GET /count HTTP/1.1\r\nHost: a\r\n\r\n";
/** Type and flags of the frame. */
const GOAWAY = "\x07\x00";

let echo: Echo;
beforeAll(async () => {
  echo = await startEcho({ limits: SHORT_LIMITS });
});
afterAll(stopEchoes);

describe("the first request", () => {
  test("must come: a silent connection is answered 408 and closed", async () => {
    const client = await connectRaw(echo.port);
    const { text, ms } = await client.closed;
    expect(text).toMatch(TOO_SLOW);
    expect(ms).toBeGreaterThan(350);
    expect(ms).toBeLessThan(2_000);
  });

  test("must come whole: headers that come byte by byte do not lengthen the time", async () => {
    const client = await connectRaw(echo.port);
    trickle(client, GET.split(""), 60);
    const { text, ms } = await client.closed;
    expect(text).toMatch(TOO_SLOW);
    expect(ms).toBeLessThan(GET.length * 60);
  });

  test("must come within the time of the connection, not of the first byte", async () => {
    const client = await connectRaw(echo.port);
    trickle(client, ["P", "RI * HT"], 300);
    expect((await client.closed).ms).toBeLessThan(300 + 400);
  });

  test("must come on HTTP/2 too: a session without a stream is sent away", async () => {
    const session = await connectHttp2(echo.port);
    const [code] = await once(session, "goaway");
    expect(code).toBe(0);
    await once(session, "close");
  });

  test("must come after the handshake: a client that does not shake hands is cut", async () => {
    const secure = await startEcho({ limits: SHORT_LIMITS, tls: selfSigned() });
    const client = await connectRaw(secure.port);
    const { text, ms } = await client.closed;
    expect(text).toBe("");
    expect(ms).toBeLessThan(2_000);
    expect(secure.complaints()).toBe("");
  });
});

describe("the next request", () => {
  test("on HTTP/1.1 may take the time of keep-alive and no longer", async () => {
    const client = await connectRaw(echo.port);
    client.send(GET);
    expect(await client.until('{"bytes":0}')).toMatch(/^HTTP\/1\.1 200 OK/);
    const answered = performance.now();
    const { error } = await client.closed;
    expect(error).toBeUndefined();
    expect(performance.now() - answered).toBeGreaterThan(250);
  });

  test("on HTTP/1.1 has headers that must not come slowly either", async () => {
    // Else a busy machine lets the time of keep-alive run out between two bytes, and nothing of headers is shown.
    const patient = await startEcho({ limits: { ...SHORT_LIMITS, keepAliveTimeoutMs: 30_000 } });
    const client = await connectRaw(patient.port);
    client.send(GET);
    await client.until('{"bytes":0}');
    trickle(client, GET.split(""), 60);
    expect((await client.closed).text).toMatch(/\{"bytes":0\}HTTP\/1\.1 408 Request Timeout/);
  });

  test("on HTTP/1.1 is not waited for because empty lines come", async () => {
    const client = await connectRaw(echo.port);
    client.send(GET);
    await client.until('{"bytes":0}');
    trickle(client, Array<string>(100).fill("\r\n"), 50);
    expect((await client.closed).ms).toBeLessThan(100 * 50);
  });

  test("on HTTP/2 is not waited for because pings come", async () => {
    const session = await connectHttp2(echo.port);
    expect(await post(session, "/count")).toMatchObject({ status: 200 });
    const answered = performance.now();
    const pings = setInterval(() => session.destroyed || session.ping(() => {}), 50);
    await once(session, "close");
    clearInterval(pings);
    expect(performance.now() - answered).toBeGreaterThan(450);
  });

  test("on HTTP/2 is not waited for because a header block trickles in", async () => {
    const client = await connectRaw(echo.port);
    // The header of a frame of 255 bytes of which only the first ones come.
    client.send(Buffer.concat([GREETING, frame(1, 5, 1, Buffer.alloc(255)).subarray(0, 9)]));
    trickle(client, Array<Buffer>(100).fill(Buffer.from([0])), 50);
    const { text, ms } = await client.closed;
    expect(text).toContain(GOAWAY);
    expect(ms).toBeLessThan(100 * 50);
  });
});
