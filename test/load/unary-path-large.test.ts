import { gzipSync } from "node:zlib";
import { fromJson, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { CreateProjectRequestSchema } from "#gen/service/v1/project_service_pb.js";
import { frame } from "../fuzz/byte-mutation.ts";
import { repository } from "../harness/call.ts";
import { createExchanger, type Exchanger } from "../harness/exchange.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";

/** More than is parsed on the main thread. */
const LARGE_BYTES = 200_000;

const REQUEST = { name: "Large", initializer: repository("https://git.example.org/large") };
const binary = toBinary(CreateProjectRequestSchema, fromJson(CreateProjectRequestSchema, REQUEST));
/** A name of 200,000 characters before the real one: the last one counts. */
const LONG_NAME = Buffer.concat([Buffer.of(0x0a, 0xc0, 0x9a, 0x0c), Buffer.alloc(LARGE_BYTES, "x")]);
const BODIES = {
  json: Buffer.from(JSON.stringify(REQUEST).padEnd(LARGE_BYTES)),
  proto: Buffer.concat([LONG_NAME, binary]),
};

const CONTENT_TYPES = [
  ["application/json", "json"],
  ["application/json; charset=utf-8", "json"],
  ["application/json;charset=utf-8", "json"],
  ["Application/JSON", "json"],
  ["application/proto", "proto"],
  ["Application/Proto", "proto"],
] as const;

/** How a body is sent. */
const WAYS = {
  "in one piece": {},
  "in two pieces": { isSplit: true },
  "without its length": { hasContentLength: false },
  gzipped: { isPacked: true },
};

describe.each(["on", "off"])("a body past 128 KiB is read with --fast-path %s", (fastPath) => {
  let server: ReachableServer;
  let exchanger: Exchanger;
  beforeAll(async () => {
    server = await startHostedServer({ args: ["--fast-path", fastPath] });
    exchanger = createExchanger(server.port);
  });
  afterAll(async () => {
    exchanger?.close();
    await stopAll();
  });

  test.each(["application/grpc", "application/grpc+proto", "Application/gRPC"])(
    "as %s",
    async (contentType) => {
      for (const [name, way] of Object.entries(WAYS)) {
        const { isSplit = false, hasContentLength = true, isPacked = false } = way as Record<string, boolean>;
        const { body, trailers } = await exchanger.send({
          http: "2",
          method: "POST",
          path: "/service.v1.ProjectService/CreateProject",
          headers: {
            authorization: `Bearer ${server.token}`,
            "content-type": contentType,
            ...(isPacked && { "grpc-encoding": "gzip" }),
          },
          body: isPacked ? frame(gzipSync(BODIES.proto), 1) : frame(BODIES.proto),
          hasContentLength,
          isSplit,
        });
        expect([name, trailers["grpc-status"], trailers["grpc-message"]]).toEqual([name, "0", undefined]);
        expect(body.toString("latin1")).toContain("https://git.example.org/large");
        expect(body.toString("latin1")).not.toContain("xxx");
      }
    },
  );

  describe.each(["1.1", "2"] as const)("over HTTP/%s", (http) => {
    test.each(CONTENT_TYPES)("as %s", async (contentType, form) => {
      for (const [name, way] of Object.entries(WAYS)) {
        const { isSplit = false, hasContentLength = true, isPacked = false } = way as Record<string, boolean>;
        const { status, body } = await exchanger.send({
          http,
          method: "POST",
          path: "/api/service.v1.ProjectService/CreateProject",
          headers: {
            authorization: `Bearer ${server.token}`,
            "content-type": contentType,
            ...(isPacked && { "content-encoding": "gzip" }),
          },
          body: isPacked ? gzipSync(BODIES[form]) : BODIES[form],
          hasContentLength,
          isSplit,
        });
        expect([name, status, status === 200 ? "" : body.toString()]).toEqual([name, 200, ""]);
        expect(body.toString("latin1")).toContain("https://git.example.org/large");
        expect(body.toString("latin1")).not.toContain("xxx");
      }
    });
  });
});
