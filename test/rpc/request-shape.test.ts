import { gzipSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { expectError } from "./expected-error.ts";
import { callConnect, callGrpc, callGrpcWeb, envelope, type RawCall } from "./raw-call.ts";

const MIB = 1024 * 1024;
const GET = "WorkflowService/GetWorkflow";
const UPDATE = "ProjectService/UpdateProject";
const CREATE = "ProjectService/CreateProjects";
const IDENTITY = "IdentityService/GetAuthenticatedIdentity";

/** Both ways to an operation, with and without the step that reads a body's JSON before its parser. */
const SERVERS: readonly (readonly [string, Record<string, string>])[] = [
  ["the unary path", {}],
  ["the protocol layer", { CHARTROOM_FAST_PATH: "off" }],
  ["the unary path with unknown fields", { CHARTROOM_ALLOW_UNKNOWN_FIELDS: "true" }],
  [
    "the protocol layer with unknown fields",
    { CHARTROOM_FAST_PATH: "off", CHARTROOM_ALLOW_UNKNOWN_FIELDS: "true" },
  ],
];

describe.each(SERVERS)("on %s", (_, env) => {
  let server: ReachableServer;
  beforeAll(async () => {
    server = await startHostedServer({ env });
  });
  afterAll(stopAll);

  test.each([
    ["lists", "[".repeat(30_000) + "]".repeat(30_000)],
    ["objects", `${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`],
    ["lists that never end", "[".repeat(30_000)],
  ])("%s inside each other are refused by their depth", async (_what, deep) => {
    for (const [operation, body] of [
      [GET, `{"workflowId":${deep}}`],
      [UPDATE, `{"projectId":"x","updateMask":${deep}}`],
      [CREATE, `{"unknown":${deep.repeat(5)}}`],
    ] as const) {
      const answer = await post(server, operation, body);
      expectError(answer, 400, "invalid_argument", "BODY_TOO_COMPLEX");
      expect(answer.body.details[0].debug.metadata).toEqual({ measure: "depth", limit: "32" });
    }
  });

  test.each([
    ["empty elements", `{"workflowId":[${"{},".repeat(9_000)}{}]}`, "parts"],
    ["numbers", `{"workflowId":[${"1,".repeat(9_000)}1]}`, "parts"],
    ["members", `{${Array.from({ length: 5_000 }, (_each, index) => `"${index}":0`)}}`, "parts"],
  ])("more %s than the request can have are refused before they are built", async (_what, body, measure) => {
    const answer = await post(server, GET, body);
    expectError(answer, 400, "invalid_argument", "BODY_TOO_COMPLEX");
    expect(answer.body.details[0].debug.metadata).toEqual({ measure, limit: "1024" });
  });

  test.each<[string, RawCall, (message: Uint8Array) => Uint8Array]>([
    ["Connect", callConnect, (message) => message],
    ["gRPC", callGrpc, envelope],
    ["gRPC-Web", callGrpcWeb, envelope],
  ])("more binary elements than the request can have are refused in %s", async (_what, call, wrapped) => {
    const elements = Buffer.alloc(2 * MIB, Buffer.from([0x0a, 0x00]));
    const error = await call(server, CREATE, wrapped(elements));
    expect(error?.code).toBe(Code.InvalidArgument);
    expect(error?.rawMessage).toMatch(
      /^the body has more than the \d+ fields that a request of this operation/,
    );
  });

  test("a mask that no request can have is refused before it is split, also within a change", async () => {
    const update = { workflowId: "x", updateMask: ",".repeat(40_000) };
    for (const [operation, request] of [
      ["WorkflowService/UpdateWorkflow", update],
      ["ResourceService/PreviewChanges", { changes: [{ updateWorkflow: update }] }],
    ] as const) {
      const answer = await post(server, operation, request);
      expectError(answer, 400, "invalid_argument", "BODY_TOO_COMPLEX");
      expect(answer.body.details[0].debug.metadata).toMatchObject({ measure: "mask_characters" });
    }
  });

  test("what unpacks to more than 400 times its size is refused past 1 MiB", async () => {
    const gzip = { "content-encoding": "gzip" };
    const packed = (size: number) => new Uint8Array(gzipSync("{}".padEnd(size)));
    const answer = await post(server, CREATE, packed(2 * MIB), server.token, gzip);
    expectError(answer, 400, "invalid_argument", "BODY_TOO_COMPLEX");
    expect(answer.body.details[0].debug.metadata).toEqual({ measure: "ratio", limit: "400" });
    // An empty batch breaks a rule of the contract: it was unpacked and parsed.
    const small = await post(server, CREATE, packed(MIB), server.token, gzip);
    expectError(small, 400, "invalid_argument", "CONSTRAINT_VIOLATED");
  });

  test("a compressed message of gRPC is unpacked and counted too", async () => {
    const elements = gzipSync(Buffer.alloc(1000 * 1000, Buffer.from([0x0a, 0x00])));
    const error = await callGrpc(server, CREATE, envelope(elements, 1), { "grpc-encoding": "gzip" });
    expect([error?.code, error?.rawMessage]).toEqual([
      Code.InvalidArgument,
      expect.stringMatching(/more than the \d+ fields/),
    ]);
  });

  test("no bytes at all are a request without fields", async () => {
    expect((await post(server, IDENTITY, "")).status).toBe(200);
    const headers = { authorization: `Bearer ${server.token}`, "content-type": "application/json" };
    const res = await fetch(`${server.url}/api/service.v1.${IDENTITY}`, { method: "POST", headers });
    expect(res.status).toBe(200);
    expect(await res.json()).toHaveProperty("subject");
    const encoding = { "content-encoding": "gzip" };
    expect((await post(server, IDENTITY, "", server.token, encoding)).status).toBe(200);
    expectError(await post(server, GET, ""), 400, "invalid_argument", "CONSTRAINT_VIOLATED");
  });
});
