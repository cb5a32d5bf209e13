import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, describe, expect, test } from "@jest/globals";
import { createListener } from "../../src/http/connection/listener.ts";
import { type Echo, startEcho, stopEchoes } from "./echo-process.ts";
import { answerOf, connectHttp2, open, post } from "./http2-client.ts";
import { connectRaw } from "./raw-client.ts";

/**
 * A process that was drained must be gone so soon after its last answer. It takes less than half a second; what a
 * busy machine adds is a small part of the time that a drain may take.
 */
const EXIT_MS = 10_000;

afterAll(stopEchoes);

/** Asks for a drain and waits until it has begun: answers then end their connections. */
async function beginDrain(echo: Echo): Promise<void> {
  echo.terminate();
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${echo.port}/active`);
    await answer.text();
    if (answer.headers.get("connection") === "close") return;
  }
}

function get(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
}

/** How a connection ends that no server accepted. */
const NEVER_TAKEN: ReadonlySet<string> = new Set(["ECONNREFUSED", "ECONNRESET"]);

describe("a drain", () => {
  test("lets requests in flight finish on both protocols, serves new ones, and the process exits", async () => {
    const echo = await startEcho({ graceMs: 40_000, clock: true });
    const client = await connectRaw(echo.port);
    client.send(get("/slow?ms=1500"));
    await echo.next("slow");
    const session = await connectHttp2(echo.port);
    const stream = open(session, "/slow?ms=1500");
    stream.end();
    const answered = answerOf(stream);
    await echo.next("slow");

    await beginDrain(echo);
    const newcomer = await connectRaw(echo.port);
    newcomer.send(get("/count"));
    expect((await newcomer.closed).text).toMatch(/^HTTP\/1\.1 200 .*connection: close\r\n.*\{"bytes":0\}$/is);
    const fresh = await connectHttp2(echo.port);
    expect(await post(fresh, "/count", "hello")).toMatchObject({ status: 200, body: '{"bytes":5}' });
    // The connection of a request in flight takes others, too.
    expect(await post(session, "/count", "hello")).toMatchObject({ status: 200, body: '{"bytes":5}' });

    await echo.pass(1_500);
    expect((await client.closed).text).toMatch(/connection: close\r\n.*\{"slow":true\}$/is);
    expect(await answered).toMatchObject({ status: 200, body: '{"slow":true}' });
    const last = performance.now();
    expect(await echo.next("drained")).toMatchObject({ isDone: true });
    const { code, at } = await echo.exited;
    expect(code).toBe(0);
    expect(at - last).toBeLessThan(EXIT_MS);
    expect(echo.complaints()).toBe("");
  });

  test("does not wait for connections without a request, and tells those of HTTP/2", async () => {
    const echo = await startEcho();
    const silent = await connectRaw(echo.port);
    const idle = await connectRaw(echo.port);
    idle.send(get("/count"));
    await idle.until('{"bytes":0}');
    const session = await connectHttp2(echo.port);
    await post(session, "/count");
    const goaway = once(session, "goaway");

    const begun = performance.now();
    echo.terminate();
    expect((await goaway)[0]).toBe(0);
    const { code, at } = await echo.exited;
    expect(code).toBe(0);
    expect(at - begun).toBeLessThan(EXIT_MS);
    expect((await idle.closed).error).toBeUndefined();
    expect((await silent.closed).error).toBeUndefined();
  });

  test("is not held up by a client that goes on sending a body nobody wants", async () => {
    const echo = await startEcho();
    const client = await connectRaw(echo.port);
    client.send("POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nsome");
    await client.until("unauthenticated");
    const begun = performance.now();
    echo.terminate();
    expect((await echo.exited).at - begun).toBeLessThan(EXIT_MS);
    expect((await client.closed).text).toMatch(/^HTTP\/1\.1 401 /);
  });

  test("breaks off what is not done within the grace, and says so", async () => {
    const echo = await startEcho({ graceMs: 400 });
    const client = await connectRaw(echo.port);
    client.send(get("/slow?ms=60000"));
    await echo.next("slow");
    const session = await connectHttp2(echo.port);
    const stream = open(session, "/slow?ms=60000");
    stream.end();
    const answer = answerOf(stream);
    await echo.next("slow");
    echo.terminate();
    const { isDone, ms } = await echo.next("drained");
    expect(isDone).toBe(false);
    expect(ms).toBeGreaterThan(390);
    expect(ms).toBeLessThan(20_000);
    expect((await client.closed).text).toBe("");
    expect((await answer).status).toBe(0);
  });

  test("costs no request its answer, however busy the clients are", async () => {
    // Of which the last quarter must not pass while a process is suspended.
    const echo = await startEcho({ graceMs: 8_000 });
    const url = `http://127.0.0.1:${echo.port}/slow?ms=20`;
    let served = 0;
    const failures: unknown[] = [];
    const loops = Array.from({ length: 4 }, async () => {
      for (;;) {
        const socket = connect(echo.port, "127.0.0.1");
        const isOpen = await once(socket, "connect").then(
          () => true,
          () => false,
        );
        socket.on("error", () => {});
        socket.destroy();
        if (!isOpen) return;
        try {
          const answer = await fetch(url, { headers: { connection: "close" } });
          if ((await answer.text()) === '{"slow":true}') served++;
        } catch (error) {
          // The listener may close between the two connections, or at the very moment of the second: the kernel
          // then breaks off what the server never took. What it took is counted below.
          const { cause } = error as { cause?: { code?: string; socket?: { bytesRead?: number } } };
          // Closed before this process, which was suspended, came to send on it what it had opened.
          const isClosed = cause?.code === "UND_ERR_SOCKET" && cause.socket?.bytesRead === 0;
          if (!isClosed && !NEVER_TAKEN.has(cause?.code ?? "")) failures.push(cause ?? error);
        }
      }
    });
    // More than there are clients: one of them has its second answer under way.
    let taken = 0;
    for (; taken < 5; taken++) await echo.next("slow");
    echo.terminate();
    await Promise.all(loops);
    expect(failures).toEqual([]);
    expect(await echo.exited).toMatchObject({ code: 0 });
    while (
      await echo.next("slow").then(
        () => true,
        () => false,
      )
    ) {
      taken++;
    }
    expect(served).toBe(taken);
  });
});

describe("close", () => {
  test("breaks every connection at once", async () => {
    const limits = { discardMs: 60_000, flushMs: 60_000, checkIntervalMs: 25 };
    const listener = createListener({ host: "127.0.0.1", port: 0, limits, handle: () => {} });
    const { port } = await listener.listen();
    const client = await connectRaw(port);
    client.send(get("/"));
    const session = await connectHttp2(port);
    const stream = open(session, "/");
    const begun = performance.now();
    await Promise.all([listener.close(), listener.close()]);
    // All of its limits are longer.
    expect(performance.now() - begun).toBeLessThan(5_500);
    expect((await client.closed).text).toBe("");
    expect((await answerOf(stream)).status).toBe(0);
    expect(listener.active).toBe(0);
  });
});

describe("listen", () => {
  test("tells the address it got, and rejects when it gets none", async () => {
    const listener = createListener({ host: "127.0.0.1", port: 0, handle: () => {} });
    const { host, port } = await listener.listen();
    expect(host).toBe("127.0.0.1");
    const second = createListener({ host, port, handle: () => {} });
    await expect(second.listen()).rejects.toMatchObject({ code: "EADDRINUSE" });
    await Promise.all([listener.close(), second.close()]);
  });
});
