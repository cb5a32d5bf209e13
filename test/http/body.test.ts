import { once } from "node:events";
import type { ClientHttp2Stream } from "node:http2";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Echo, SHORT_LIMITS, startEcho, stopEchoes } from "./echo-process.ts";
import { dataFrame, GREETING, postFrame, resetFrame } from "./frames.ts";
import { answerOf, connectHttp2, open } from "./http2-client.ts";
import { connectRaw, trickle } from "./raw-client.ts";

const TOO_SLOW = {
  code: "deadline_exceeded",
  message: "the request body arrived too slowly",
  details: [{ debug: { reason: "ERROR_REASON_DEADLINE_EXCEEDED", metadata: {} } }],
};
const MEBIBYTE = 1_048_576;

let echo: Echo;
beforeAll(async () => {
  const { bodyIdleMs = 0, checkIntervalMs = 0 } = SHORT_LIMITS;
  echo = await startEcho({ limits: { bodyIdleMs, checkIntervalMs } });
});
afterAll(stopEchoes);

/** A server whose limits see time pass only when the test lets it: what is to stay open does on a busy machine, too. */
function startClocked(): Promise<Echo> {
  const { bodyIdleMs = 0 } = SHORT_LIMITS;
  return startEcho({ limits: { bodyIdleMs, checkIntervalMs: 5 }, clock: true });
}

function head(path: string, length: number): string {
  return `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\nContent-Type: text/plain\r\n\r\n`;
}

/** Parts of a body that sum up to `bytes`. */
function parts(bytes: number, count: number): Buffer[] {
  return Array<Buffer>(count).fill(Buffer.alloc(bytes / count));
}

/** Sends a part every `everyMs` until there are none or the stream is closed. */
async function sendPaced(stream: ClientHttp2Stream, chunks: Buffer[], everyMs: number): Promise<void> {
  for (const chunk of chunks) {
    await wait(everyMs);
    if (stream.closed) return;
    stream.write(chunk);
  }
  stream.end();
}

describe("a body that stops coming", () => {
  test("is answered 408 on HTTP/1.1, and the connection is closed", async () => {
    const client = await connectRaw(echo.port);
    client.send(`${head("/count", 100)}some`);
    const { text, ms } = await client.closed;
    expect(text).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
    expect(text).toMatch(/\r\nContent-Type: application\/json\r\n/i);
    expect(text).toMatch(/\r\nConnection: close\r\n/i);
    expect(JSON.parse(text.split("\r\n\r\n")[1] ?? "")).toMatchObject(TOO_SLOW);
    expect(ms).toBeGreaterThan(450);
    expect(ms).toBeLessThan(15_000);
  });

  test("fails the handler that reads it, whose answer then goes nowhere", async () => {
    const client = await connectRaw(echo.port);
    client.send(`${head("/count", 100)}other`);
    expect(await echo.next("failed")).toEqual({ event: "failed", bytes: 4, code: "ECONNRESET" });
    expect(await echo.next("failed")).toEqual({ event: "failed", bytes: 5, code: "ECONNRESET" });
    expect((await client.closed).text.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(echo.complaints()).toBe("");
  });

  test("is answered 408 on HTTP/2, and only its stream is reset", async () => {
    const session = await connectHttp2(echo.port);
    const stalled = open(session, "/count");
    stalled.write("some");
    const answer = await answerOf(stalled);
    expect(answer).toMatchObject({ status: 408, resetCode: 0 });
    expect(answer.headers).toMatchObject({ "content-type": "application/json" });
    expect(JSON.parse(answer.body)).toMatchObject(TOO_SLOW);
    expect(await echo.next("failed")).toMatchObject({ bytes: 4, code: "ECONNRESET" });

    const next = open(session, "/count");
    next.end("more");
    expect(await answerOf(next)).toMatchObject({ status: 200, body: '{"bytes":4}' });
    session.close();
  });

  test("breaks off an answer that has begun", async () => {
    const client = await connectRaw(echo.port);
    client.send(`${head("/eager", 100)}some`);
    await client.until("begun");
    expect((await client.closed).text).not.toContain("408");

    const session = await connectHttp2(echo.port);
    const stream = open(session, "/eager");
    stream.write("some");
    expect(await answerOf(stream)).toMatchObject({ status: 200, resetCode: 8 });
    session.close();
  });

  test("is cut whether or not anyone reads it", async () => {
    const client = await connectRaw(echo.port);
    client.send(`${head("/late?ms=60000", 100)}some`);
    expect((await client.closed).text).toMatch(/^HTTP\/1\.1 408/);
  });

  test("is cut in its trailers too", async () => {
    const client = await connectRaw(echo.port);
    client.send("POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n0\r\n");
    trickle(client, "Trailer-That-Never-Ends: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".split(""), 50);
    expect((await client.closed).text).toMatch(/^HTTP\/1\.1 408/);
  });
});

test("a body that came whole with its connection's first bytes is not waited for", async () => {
  const client = await connectRaw(echo.port);
  client.send(Buffer.concat([GREETING, postFrame("/slow?ms=2000"), dataFrame("some", true)]));
  expect(await client.until("}")).toContain('"slow":true');
  client.socket.destroy();
});

describe("a body below the least rate", () => {
  // 10,000 bytes per second without a pause that would count as idle, for longer than any machine is busy.
  const slow = parts(300_000, 600);

  test("is cut on HTTP/1.1", async () => {
    const client = await connectRaw(echo.port);
    client.send(head("/count", 300_000));
    trickle(client, slow, 50);
    const { text, ms } = await client.closed;
    expect(text).toMatch(/^HTTP\/1\.1 408/);
    expect(ms).toBeGreaterThan(450);
    expect(ms).toBeLessThan(600 * 50);
  });

  test("is cut on HTTP/2", async () => {
    const session = await connectHttp2(echo.port);
    const stream = open(session, "/count");
    const sent = sendPaced(stream, slow, 50);
    expect(await answerOf(stream)).toMatchObject({ status: 408 });
    await sent;
    session.close();
  });
});

describe("a body at a good rate", () => {
  // 400,000 bytes per second for three times as long as the limits are lenient.
  const good = parts(600_000, 30);

  /** Sends a part each time that 50 ms have passed since the one before had come. */
  async function sendSteadily(watched: Echo, send: (part: Buffer) => unknown): Promise<void> {
    let sent = 0;
    for (const part of good) {
      await watched.pass(50);
      send(part);
      sent += part.length;
      for (let heard = 0; heard < sent; ) heard = (await watched.next("heard")).bytes ?? 0;
    }
  }

  test("is taken on HTTP/1.1 however long it takes", async () => {
    const clocked = await startClocked();
    const client = await connectRaw(clocked.port);
    client.send(head("/heard", 600_000));
    await sendSteadily(clocked, client.send);
    expect(await client.until('{"bytes":600000}')).toMatch(/^HTTP\/1\.1 200/);
    client.socket.destroy();
  });

  test("is taken on HTTP/2 however long it takes", async () => {
    const clocked = await startClocked();
    const session = await connectHttp2(clocked.port);
    const stream = open(session, "/heard");
    await sendSteadily(clocked, (part) => stream.write(part));
    stream.end();
    expect(await answerOf(stream)).toMatchObject({ status: 200, body: '{"bytes":600000}' });
    session.close();
  });
});

describe("a handler that is slower than the client", () => {
  test.each(["/late?ms=1200", "/busy?ms=1200"])("gets every byte on both protocols: %s", async (path) => {
    const clocked = await startClocked();
    const client = await connectRaw(clocked.port);
    client.send(head(path, MEBIBYTE));
    client.send(Buffer.alloc(MEBIBYTE));
    await clocked.next("waiting");

    const session = await connectHttp2(clocked.port);
    const stream = open(session, path);
    stream.end(Buffer.alloc(MEBIBYTE));
    await clocked.next("waiting");

    await clocked.pass(1_200);
    expect(await answerOf(stream)).toMatchObject({ status: 200, body: `{"bytes":${MEBIBYTE}}` });
    expect(await client.until(`{"bytes":${MEBIBYTE}}`)).toMatch(/^HTTP\/1\.1 200/);
    client.socket.destroy();
    session.close();
  });

  test("may take its time to ask for a body that the client holds back", async () => {
    const clocked = await startClocked();
    const client = await connectRaw(clocked.port);
    client.send(head("/late?ms=1200", 4).replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n"));
    await clocked.next("waiting");
    await clocked.pass(1_200);
    await client.until("100 Continue");
    client.send("some");
    await client.until('{"bytes":4}');
    client.socket.destroy();
  });
});

describe("an exempt request", () => {
  test("may keep its side open for any time", async () => {
    const clocked = await startClocked();
    const session = await connectHttp2(clocked.port);
    const stream = open(session, "/exempt");
    stream.write("some");
    await clocked.next("exempt");
    await clocked.pass(1_200);
    stream.end("more");
    expect(await answerOf(stream)).toMatchObject({ status: 200, body: '{"bytes":8}' });
    session.close();
  });
});

describe("a client that goes away within its body", () => {
  test("never leaves the handler with half a body that looks whole", async () => {
    const watched = await startEcho();
    const gone = { code: "ECONNRESET", bytes: 4 };

    const client = await connectRaw(watched.port);
    client.send(`${head("/eager", 100)}some`);
    await client.until("begun");
    client.socket.destroy();
    expect(await watched.next("failed")).toMatchObject(gone);

    const reset = await connectRaw(watched.port);
    reset.send(Buffer.concat([GREETING, postFrame("/eager"), dataFrame("some")]));
    await reset.until("begun");
    reset.send(resetFrame(8));
    expect(await watched.next("failed")).toMatchObject(gone);

    // What Node's own client does when a request is cancelled: it ends the body before it resets the stream.
    const cancelled = await connectRaw(watched.port);
    cancelled.send(Buffer.concat([GREETING, postFrame("/eager"), dataFrame("some")]));
    await cancelled.until("begun");
    cancelled.send(Buffer.concat([dataFrame("", true), resetFrame(8)]));
    expect(await watched.next("failed")).toMatchObject(gone);
    for (const { socket } of [reset, cancelled]) socket.destroy();

    const session = await connectHttp2(watched.port);
    const stream = open(session, "/eager");
    stream.write("some");
    await once(stream, "response");
    session.destroy();
    expect(await watched.next("failed")).toMatchObject(gone);
    expect(watched.complaints()).toBe("");
  });
});
