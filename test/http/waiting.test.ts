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
/** Headers that go on for as long as a test may take. */
const ENDLESS = `${GET.trimEnd()}\r\nX-Endless: ${"a".repeat(10_000)}`;
/** Far more than the limit takes on a machine that is busy, and less than what a server faces a network with. */
const SOON_MS = 5_500;
/** Type and flags of the frame. */
const GOAWAY = "\x07\x00";

/** For clients that are in time with their first bytes, though their process is suspended for a while. */
const LENIENT_LIMITS = { ...SHORT_LIMITS, headersTimeoutMs: 3_000 };

let echo: Echo;
let lenient: Echo;
beforeAll(async () => {
  echo = await startEcho({ limits: SHORT_LIMITS });
  lenient = await startEcho({ limits: LENIENT_LIMITS });
});
afterAll(stopEchoes);

describe("the first request", () => {
  test("must come: a silent connection is answered 408 and closed", async () => {
    const client = await connectRaw(echo.port);
    const { text, ms } = await client.closed;
    expect(text).toMatch(TOO_SLOW);
    expect(ms).toBeGreaterThan(350);
    expect(ms).toBeLessThan(SOON_MS);
  });

  test("must come whole: headers that come byte by byte do not lengthen the time", async () => {
    const client = await connectRaw(echo.port);
    trickle(client, ENDLESS.split(""), 60);
    const { text } = await client.closed;
    expect(text).toMatch(TOO_SLOW);
  });

  test("must come within the time of the connection, not of the first byte", async () => {
    const clocked = await startEcho({ limits: SHORT_LIMITS, clock: true });
    const client = await connectRaw(clocked.port);
    // What is answered to another connection came after what this one has sent.
    const behind = () => fetch(`http://127.0.0.1:${clocked.port}/active`).then((answer) => answer.text());
    await behind();
    await clocked.pass(300);
    client.send("P");
    await behind();
    await clocked.pass(99);
    await behind();
    expect(client.socket.readyState).toBe("open");
    await clocked.pass(1);
    expect((await client.closed).text).toMatch(TOO_SLOW);
  });

  test("must come on HTTP/2 too: a session without a stream is sent away", async () => {
    const session = await connectHttp2(lenient.port);
    const [code] = await once(session, "goaway");
    expect(code).toBe(0);
    await once(session, "close");
  });

  test("must come after the handshake: a client that does not shake hands is cut", async () => {
    const secure = await startEcho({ limits: SHORT_LIMITS, tls: selfSigned() });
    const client = await connectRaw(secure.port);
    const { text, ms } = await client.closed;
    expect(text).toBe("");
    expect(ms).toBeLessThan(SOON_MS);
    expect(secure.complaints()).toBe("");
  });
});

describe("the next request", () => {
  test("on HTTP/1.1 may take the time of keep-alive and no longer", async () => {
    const client = await connectRaw(lenient.port);
    const asked = performance.now();
    client.send(GET);
    expect(await client.until('{"bytes":0}')).toMatch(/^HTTP\/1\.1 200 OK/);
    const { error } = await client.closed;
    expect(error).toBeUndefined();
    expect(performance.now() - asked).toBeGreaterThan(290);
  });

  test("on HTTP/1.1 has headers that must not come slowly either", async () => {
    // Else a busy machine lets the time of keep-alive run out between two bytes, and nothing of headers is shown.
    const patient = await startEcho({ limits: { ...LENIENT_LIMITS, keepAliveTimeoutMs: 30_000 } });
    const client = await connectRaw(patient.port);
    client.send(GET);
    await client.until('{"bytes":0}');
    trickle(client, ENDLESS.split(""), 60);
    expect((await client.closed).text).toMatch(/\{"bytes":0\}HTTP\/1\.1 408 Request Timeout/);
  });

  test("on HTTP/1.1 is not waited for because empty lines come", async () => {
    const client = await connectRaw(lenient.port);
    client.send(GET);
    await client.until('{"bytes":0}');
    trickle(client, Array<string>(10_000).fill("\r\n"), 50);
    expect((await client.closed).text.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  test("on HTTP/2 is not waited for because pings come", async () => {
    const session = await connectHttp2(lenient.port);
    const asked = performance.now();
    expect(await post(session, "/count")).toMatchObject({ status: 200 });
    const pings = setInterval(() => session.destroyed || session.ping(() => {}), 50);
    await once(session, "close");
    clearInterval(pings);
    expect(performance.now() - asked).toBeGreaterThan(490);
  });

  test("on HTTP/2 is not waited for because a header block trickles in", async () => {
    const client = await connectRaw(lenient.port);
    // The header of a frame of 10,000 bytes of which only the first ones come.
    client.send(Buffer.concat([GREETING, frame(1, 5, 1, Buffer.alloc(10_000)).subarray(0, 9)]));
    trickle(client, Array<Buffer>(9_999).fill(Buffer.from([0])), 50);
    const { text } = await client.closed;
    expect(text).toContain(GOAWAY);
  });
});
