import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Echo, SHORT_LIMITS, startEcho, stopEchoes } from "./echo-process.ts";
import { answerOf, connectHttp2, open, post } from "./http2-client.ts";
import { connectRaw, type RawClient } from "./raw-client.ts";

/** An answer and the end of its connection wait for none of the limits, which are longer. */
const MOST_MS = 20_000;
const PATIENT_MS = 60_000;

let echo: Echo;
beforeAll(async () => {
  const limits = {
    ...SHORT_LIMITS,
    headersTimeoutMs: PATIENT_MS,
    keepAliveTimeoutMs: PATIENT_MS,
    bodyIdleMs: PATIENT_MS,
  };
  echo = await startEcho({ limits });
});
afterAll(stopEchoes);

/** Goes on sending as long as the server takes it. */
function pour(client: RawClient): void {
  const chunk = Buffer.alloc(65_536);
  const more = (): void => {
    while (client.socket.writable && client.socket.write(chunk));
  };
  client.socket.on("drain", more);
  more();
}

describe("on HTTP/1.1, an answer that does not wait for the body", () => {
  const GIGABYTE = 1_000_000_000;
  const head = (path: string) => `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${GIGABYTE}\r\n\r\n`;

  test.each([
    ["/refuse", 401],
    ["/enough", 413],
  ])("reaches a client that goes on sending, and ends the connection: %s", async (path, status) => {
    const client = await connectRaw(echo.port);
    client.send(head(path));
    pour(client);
    const { text, ms } = await client.closed;
    expect(text).toMatch(new RegExp(`^HTTP/1\\.1 ${status} .*connection: close\r\n.*\\}$`, "is"));
    expect(ms).toBeLessThan(MOST_MS);
    expect(client.socket.bytesWritten).toBeLessThan(GIGABYTE / 10);
  });

  test("ends the connection of a client that waits, without a reset", async () => {
    const client = await connectRaw(echo.port);
    client.send(`${head("/enough")}some`);
    const { text, ms, error } = await client.closed;
    expect(text).toMatch(/^HTTP\/1\.1 413 /);
    expect(error).toBeUndefined();
    expect(ms).toBeLessThan(MOST_MS);
  });

  test("leaves the server running where its reader has destroyed the request", async () => {
    const client = await connectRaw(echo.port);
    client.send(`${head("/leave")}some`);
    expect((await client.closed).text).toMatch(/^HTTP\/1\.1 413 /);
    const next = await connectRaw(echo.port);
    next.send("POST /active HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    await next.until('{"active":1}');
    next.socket.destroy();
  });

  test("leaves the connection open when the body has come meanwhile", async () => {
    const client = await connectRaw(echo.port);
    client.send("POST /active HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    await client.until('{"active":1}');
    client.send("POST /slow?ms=0 HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nsome");
    expect(await client.until('{"slow":true}')).not.toMatch(/connection: close/i);
    client.socket.destroy();
  });

  test("leaves the connection open when its last byte was read in the moment in which it came", async () => {
    const client = await connectRaw(echo.port);
    // From the second request on the parser reads from the socket without Node in between.
    for (const body of ["1st.", "2nd.", "3rd."]) {
      client.send(`POST /prompt HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n${body}`);
      expect(await client.until(`{"prompt":"${body}"}`)).not.toMatch(/connection: close/i);
    }
    client.socket.destroy();
  });
});

describe("on HTTP/2, an answer that does not wait for the body", () => {
  test.each([
    ["/refuse", 401],
    ["/enough", 413],
    ["/nothing", 204],
  ])("ends its stream without an error, and no other: %s", async (path, status) => {
    const session = await connectHttp2(echo.port);
    const stream = open(session, path);
    stream.write("some");
    expect(await answerOf(stream)).toMatchObject({ status, resetCode: 0 });
    expect(await post(session, "/active")).toMatchObject({ status: 200, body: '{"active":1}' });
    session.close();
  });

  test("arrives whole, with its trailers", async () => {
    const session = await connectHttp2(echo.port);
    const stream = open(session, "/trailers");
    stream.write(Buffer.alloc(1_000_000));
    const { status, body, trailers, resetCode } = await answerOf(stream);
    expect({ status, bytes: body.length, trailers, resetCode }).toEqual({
      status: 200,
      bytes: 200_000,
      trailers: { "grpc-status": "8" },
      resetCode: 0,
    });
    session.close();
  });
});
