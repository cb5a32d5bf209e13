import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { connect, createServer as createHttp2Server, type Http2ServerResponse } from "node:http2";
import {
  type AddressInfo,
  createServer as createNetServer,
  connect as netConnect,
  type Socket,
} from "node:net";
import { buffer, text } from "node:stream/consumers";
import { afterEach, expect, test } from "@jest/globals";
import { dataFrame, GREETING, postFrame } from "../../../test/http/frames.ts";
import { handleOf, hasEnd, replacePush, suppressWrites } from "./node-internals.ts";

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function listening<S extends { listen(port: number, host: string): unknown; close(): unknown }>(
  server: S & { address(): unknown; on(event: string, listener: () => void): unknown },
): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server as never, "listening");
  closing.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** Responds as a handler does that does not know that a response was already sent. */
function respondAgain(res: ServerResponse | Http2ServerResponse): void {
  suppressWrites(res);
  const anyResponse = res as ServerResponse;
  anyResponse.statusCode = 500;
  anyResponse.setHeader("late", "yes");
  anyResponse.appendHeader("late", "yes");
  anyResponse.removeHeader("first");
  anyResponse.writeHead(500);
  anyResponse.addTrailers({ late: "yes" });
  anyResponse.flushHeaders();
  expect(anyResponse.write("late")).toBe(true);
  anyResponse.end("late");
  expect(anyResponse.statusCode).toBe(200);
}

test("a suppressed response of HTTP/1 stays as it was sent", async () => {
  const server = createServer((_, res) => {
    res.setHeader("first", "kept");
    res.end("first");
    respondAgain(res);
  });
  const res = await fetch(`http://127.0.0.1:${await listening(server)}`);
  expect([res.status, res.headers.get("first"), res.headers.get("late")]).toEqual([200, "kept", null]);
  expect(await res.text()).toBe("first");
});

test("a suppressed response of HTTP/2 stays as it was sent", async () => {
  const server = createHttp2Server((_, res) => {
    res.end("first");
    respondAgain(res);
  });
  const session = connect(`http://127.0.0.1:${await listening(server)}`);
  closing.push(() => session.destroy());
  const stream = session.request({ ":path": "/" });
  const [headers] = await once(stream, "response");
  expect([headers[":status"], headers.late]).toEqual([200, undefined]);
  expect(await text(stream)).toBe("first");
});

test("all bytes of a body of HTTP/2 pass a replaced push, and its end, and its reader gets them", async () => {
  const sent = Buffer.alloc(300_000, "body");
  const passed: (number | null)[] = [];
  let wanted = 0;
  const received = Promise.withResolvers<Buffer>();
  const server = createHttp2Server((req, res) => {
    replacePush(req.stream, {
      pushed(push, chunk, encoding) {
        passed.push(chunk === null ? null : chunk.length);
        return push.call(req.stream, chunk, encoding);
      },
      wanted: () => {
        wanted += 1;
      },
    });
    received.resolve(buffer(req));
    res.end();
  });
  const session = connect(`http://127.0.0.1:${await listening(server)}`);
  closing.push(() => session.destroy());
  session.request({ ":path": "/", ":method": "POST" }).end(sent);
  expect((await received.promise).equals(sent)).toBe(true);
  expect(passed.at(-1)).toBeNull();
  expect(passed.reduce<number>((sum, length) => sum + (length ?? 0), 0)).toBe(sent.length);
  expect(wanted).toBeGreaterThan(1);
});

test.each([
  ["whole", true],
  ["in part", false],
])("a body of HTTP/2 that comes %s with its connection's first bytes has its end: %s", async (_, isLast) => {
  const found = Promise.withResolvers<boolean>();
  const server = createHttp2Server((req) => found.resolve(hasEnd(req.stream)));
  // Like the listener, which reads the first bytes to detect the protocol.
  const sniffing = createNetServer({ allowHalfOpen: true }, (socket) => {
    socket.once("readable", () => {
      socket.unshift(socket.read());
      server.emit("connection", socket);
    });
  });
  const socket = netConnect(await listening(sniffing), "127.0.0.1");
  closing.push(() => socket.destroy());
  socket.write(Buffer.concat([GREETING, postFrame("/"), dataFrame("some", isLast)]));
  expect(await found.promise).toBe(isLast);
});

test("the handle of a socket counts what was written, and what its reader has not taken", async () => {
  const accepted = Promise.withResolvers<Socket>();
  const server = createNetServer((socket) => accepted.resolve(socket.pause()));
  const writer = netConnect(await listening(server), "127.0.0.1");
  closing.push(() => writer.destroy());
  await once(writer, "connect");
  const reader = await accepted.promise;
  closing.push(() => reader.destroy());
  // More than the socket buffers of both sides hold.
  const bytes = 64 * 1024 * 1024;
  const written = new Promise((resolve) => writer.write(Buffer.alloc(bytes), resolve));
  const handle = handleOf(writer);
  expect(handle?.bytesWritten).toBe(bytes);
  expect(handle?.writeQueueSize).toBeGreaterThan(0);
  reader.resume();
  await written;
  expect(handle?.writeQueueSize).toBe(0);
  writer.destroy();
  await once(writer, "close");
  expect(handleOf(writer)).toBeNull();
});
