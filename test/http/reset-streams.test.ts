import { once } from "node:events";
import { constants } from "node:http2";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { envelope } from "../harness/envelope.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { connectHttp2, open } from "./http2-client.ts";

const OPERATION = "service.v1.EventService/WatchEvents";

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ args: ["--log-level", "info"] });
});
afterAll(stopAll);

test("a client that resets a stream, with whatever code, gave it up: the log tells of no fault", async () => {
  const session = await connectHttp2(server.port);
  const headers = { "content-type": "application/connect+json", authorization: `Bearer ${server.token}` };
  const codes = [
    constants.NGHTTP2_CANCEL,
    constants.NGHTTP2_PROTOCOL_ERROR,
    constants.NGHTTP2_INTERNAL_ERROR,
    constants.NGHTTP2_COMPRESSION_ERROR,
  ];
  for (const code of codes) {
    const stream = open(session, `/api/${OPERATION}`, headers);
    stream.end(envelope(Buffer.from("{}")));
    await once(stream, "response");
    stream.close(code);
  }
  session.close();
  await until(
    () => server.log().filter((line) => line.operation === OPERATION && line.code !== undefined),
    (lines) => lines.length === codes.length,
  );
  const logged = server.log().filter(({ operation }) => operation === OPERATION);
  expect(logged.map(({ code }) => code)).toEqual(codes.map(() => "canceled"));
  // What comes of a call that ends is logged by then.
  await server.stop();
  expect(server.log().filter(({ level }) => level === "error")).toEqual([]);
});
