import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { GetProjectRequestSchema } from "#gen/service/v1/project_service_pb.js";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";
import { callConnect, callGrpc, callGrpcHttp1, callGrpcWeb, envelope } from "./raw-call.ts";

const OPERATION = "ProjectService/GetProject";
const NOWHERE = toBinary(
  GetProjectRequestSchema,
  create(GetProjectRequestSchema, { projectId: "0190c0de-0000-7000-8000-000000000000" }),
);

let server: HostedServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

const bytes = (hex: string) => Buffer.from(hex.replaceAll(" ", ""), "hex");

/** Bytes that are no GetProjectRequest, by what is wrong with them. */
const MALFORMED: readonly (readonly [string, Buffer])[] = [
  ["a tag without its value", bytes("0a")],
  ["a text that ends too early", bytes("0a 7f 61")],
  ["a field number 0", bytes("00 00")],
  ["a wire type that does not exist", bytes("0f")],
  ["a number that never ends", Buffer.alloc(11, 0xff)],
  ["a text that is no UTF-8", bytes("0a 02 c3 28")],
  ["a length of 2 GiB", bytes("0a ff ff ff ff 07")],
  ["a group that never ends", Buffer.alloc(10, 0x7b)],
  ["a length where a text should be", bytes("08 05")],
];
const DEEP = Buffer.concat([Buffer.alloc(5_000, 0x7b), Buffer.alloc(5_000, 0x7c)]);

const outcomeOf = (error: ConnectError | undefined) => [
  error && Code[error.code],
  error?.findDetails(ErrorDetailSchema).map(({ reason }) => ErrorReason[reason]),
];
const REFUSED = ["InvalidArgument", ["BODY_MALFORMED"]];
const FOUND_NOTHING = ["NotFound", ["NOT_FOUND"]];

describe.each([
  ["Connect", callConnect, (message: Uint8Array) => message],
  ["gRPC", callGrpc, envelope],
  ["gRPC over HTTP/1.1", callGrpcHttp1, envelope],
  ["gRPC-Web", callGrpcWeb, envelope],
])("a message in %s", (_, call, wrapped) => {
  test("that is well formed reaches its operation", async () => {
    expect(outcomeOf(await call(server, OPERATION, wrapped(NOWHERE)))).toEqual(FOUND_NOTHING);
  });

  test("may carry fields that the contract does not know", async () => {
    const more = Buffer.concat([NOWHERE, bytes("f8 07 01")]);
    expect(outcomeOf(await call(server, OPERATION, wrapped(more)))).toEqual(FOUND_NOTHING);
  });

  test.each(MALFORMED)("is the caller's fault when it has %s", async (_what, message) => {
    expect(outcomeOf(await call(server, OPERATION, wrapped(message)))).toEqual(REFUSED);
  });

  test("is the caller's fault when it has groups 5,000 deep, which are counted and not followed", async () => {
    const outcome = outcomeOf(await call(server, OPERATION, wrapped(DEEP)));
    expect(outcome).toEqual(["InvalidArgument", ["BODY_TOO_COMPLEX"]]);
  });

  test("may not carry an enum's number that the contract does not know", async () => {
    // filter.runnerKinds: 99
    const error = await call(server, "ProjectService/ListProjects", wrapped(bytes("12 03 22 01 63")));
    expect(outcomeOf(error)).toEqual(["InvalidArgument", ["CONSTRAINT_VIOLATED"]]);
  });
});

describe.each([
  ["gRPC", callGrpc],
  ["gRPC over HTTP/1.1", callGrpcHttp1],
  ["gRPC-Web", callGrpcWeb],
])("an envelope of %s", (_, call) => {
  test.each([
    ["ends within its head", Buffer.from([0, 0])],
    ["ends within its message", envelope(NOWHERE, 0, NOWHERE.length + 1)],
    ["says that it is compressed, but not how", envelope(gzipSync(NOWHERE), 1)],
  ])("is the caller's fault when it %s", async (_what, body) => {
    expect(outcomeOf(await call(server, OPERATION, body))).toEqual(REFUSED);
  });

  test("may be compressed, but must then be what it says", async () => {
    const headers = { "grpc-encoding": "gzip" };
    const good = await call(server, OPERATION, envelope(gzipSync(NOWHERE), 1), headers);
    expect(outcomeOf(good)).toEqual(FOUND_NOTHING);
    const bad = await call(server, OPERATION, envelope(bytes("01 02 03"), 1), headers);
    expect(outcomeOf(bad)).toEqual(REFUSED);
    const unknown = await call(server, OPERATION, envelope(NOWHERE, 1), { "grpc-encoding": "br" });
    expect(outcomeOf(unknown)).toEqual(["Unimplemented", ["TRANSPORT_UNSUPPORTED"]]);
  });

  test.each([0x02, 0x82])("is counted with flags that mean nothing: %i", async (flags) => {
    const error = await call(server, OPERATION, envelope(DEEP, flags));
    // gRPC-Web ends a body by the higher one.
    const isTrailer = call === callGrpcWeb && flags === 0x82;
    expect(outcomeOf(error)).toEqual(
      isTrailer ? ["Unimplemented", ["TRANSPORT_UNSUPPORTED"]] : ["InvalidArgument", ["BODY_TOO_COMPLEX"]],
    );
  });

  test("must come once for a unary operation", async () => {
    for (const body of [Buffer.alloc(0), Buffer.concat([envelope(NOWHERE), envelope(NOWHERE)])]) {
      expect(outcomeOf(await call(server, OPERATION, body))).toEqual([
        "Unimplemented",
        ["TRANSPORT_UNSUPPORTED"],
      ]);
    }
  });

  test("is not awaited when its head promises more than the operation takes", async () => {
    const error = await call(server, OPERATION, envelope(NOWHERE, 0, 2 ** 32 - 1));
    expect(outcomeOf(error)).toEqual(["ResourceExhausted", ["BODY_TOO_LARGE"]]);
  });

  test.each(["abc", "1", "1s", "123456789S", ""])("with the timeout %j is refused", async (timeout) => {
    const error = await call(server, OPERATION, envelope(NOWHERE), { "grpc-timeout": timeout });
    expect(outcomeOf(error)).toEqual(REFUSED);
  });
});

test("none of this was a fault of the server", async () => {
  expect(server.log().filter(({ level }) => level === "error")).toEqual([]);
});
