import { once } from "node:events";
import { connect } from "node:http2";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";
import { expectError } from "./expected-error.ts";
import { callConnect, callGrpcWeb, envelope } from "./raw-call.ts";

const WHO = "IdentityService/GetAuthenticatedIdentity";

let server: HostedServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

const who = (headers: Readonly<Record<string, string>>, body: unknown = {}) =>
  post(server, WHO, body, server.token, headers);

describe("a JSON body", () => {
  test.each([
    'application/json; charset="utf-8"',
    "application/json;",
    "application/json; charset=UTF-8",
    'APPLICATION/JSON ;Charset="Utf-8";',
    "application/json;  charset=utf8",
  ])("is one with the content type %s", async (type) => {
    const { status, header, body } = await who({ "content-type": type });
    expect([status, header.get("content-type")]).toEqual([200, "application/json"]);
    expect(body.organizationId).toMatch(/^[\da-f-]{36}$/);
  });

  test.each([
    "application/json; charset=iso-8859-1",
    'application/json; charset="utf-8',
    "application/jsonx",
  ])("is none with the content type %s", async (type) => {
    expectError(await who({ "content-type": type }), 415, "unimplemented", "TRANSPORT_UNSUPPORTED");
  });

  test.each(["GZIP", "Gzip", "x-gzip"])("may be compressed as %s", async (encoding) => {
    expect((await who({ "content-encoding": encoding }, gzipSync("{}"))).status).toBe(200);
  });

  test("may be said not to be compressed in capitals", async () => {
    expect((await who({ "content-encoding": "IDENTITY" })).status).toBe(200);
  });
});

test.each([
  ["application/json", "content-encoding", "accept-encoding"],
  ["application/connect+json", "connect-content-encoding", "connect-accept-encoding"],
  ["application/grpc-web", "grpc-encoding", "grpc-accept-encoding"],
  ["application/grpc", "grpc-encoding", "grpc-accept-encoding"],
])(
  "a body of %s in a compression that the server does not know gets told which it does",
  async (type, name, known) => {
    const operation = type.includes("connect+") ? "EventService/WatchEvents" : WHO;
    const session = connect(server.url);
    const call = async (encoding: string) => {
      const stream = session.request({
        ":method": "POST",
        ":path": `/service.v1.${operation}`,
        authorization: `Bearer ${server.token}`,
        "content-type": type,
        "connect-timeout-ms": "1",
        [name]: encoding,
      });
      stream.end(type === "application/json" ? "{}" : envelope(Buffer.alloc(0)));
      const [headers] = await once(stream, "response");
      stream.close();
      return headers[known];
    };
    try {
      expect([await call("br"), await call("gzip"), await call("identity")]).toEqual([
        "gzip",
        undefined,
        undefined,
      ]);
    } finally {
      session.destroy();
    }
  },
);

test("messages of other protocols may be compressed in capitals, too", async () => {
  const packed = envelope(gzipSync(Buffer.alloc(0)), 1);
  expect(await callGrpcWeb(server, WHO, packed, { "grpc-encoding": "GZIP" })).toBeUndefined();
  const empty = gzipSync(Buffer.alloc(0));
  expect(await callConnect(server, WHO, empty, { "content-encoding": "GZIP" })).toBeUndefined();
});

test.each([
  ['application/connect+json; charset="UTF-8"', "connect-content-encoding", ""],
  ['application/json; charset="UTF-8";', "content-encoding", "text/event-stream"],
])("a stream is begun with the content type %s, compressed in capitals", async (type, encoding, accept) => {
  const message = Buffer.from('{"from":"nowhere"}');
  const body = accept === "" ? envelope(gzipSync(message), 1) : gzipSync(message);
  const res = await fetch(`${server.url}/api/service.v1.EventService/WatchEvents`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${server.token}`,
      "content-type": type,
      [encoding]: "GZIP",
      ...(accept !== "" && { accept }),
    },
    body: new Uint8Array(body),
  });
  const sent = Buffer.from(await res.arrayBuffer());
  const text = sent[0] === 3 ? gunzipSync(sent.subarray(5)).toString() : sent.toString();
  // It was read: what is wrong is in the message.
  expect(text).toContain('key \\"from\\" is unknown');
});
