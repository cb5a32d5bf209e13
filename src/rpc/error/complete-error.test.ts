import { gunzipSync, gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createConnectRouter, createContextValues } from "@connectrpc/connect";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import {
  codeToHttpStatus,
  endStreamFromJson,
  errorFromJsonBytes,
} from "@connectrpc/connect/protocol-connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { trailerParse } from "@connectrpc/connect/protocol-grpc-web";
import { compressionGzip } from "@connectrpc/connect-node";
import { describe, expect, test } from "@jest/globals";
import { Health } from "#gen/grpc/health/v1/health_pb.js";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { GetProjectRequestSchema, ProjectService } from "#gen/service/v1/project_service_pb.js";
import { envelope, last, whole } from "../../../test/harness/envelope.ts";
import { DomainError } from "../../domain/error.ts";
import { type CallRecord, callRecordKey } from "../access/call-record.ts";
import { JSON_OPTIONS } from "../request/json-options.ts";
import { completeError, completeUnaryError } from "./complete-error.ts";
import { errorInterceptor } from "./error-interceptor.ts";

/** What the operation does with a request. */
type Behaviour = () => object;

/** The outcome of an answer: what the client reads, and what the server noted. */
interface Outcome {
  readonly error: ConnectError | undefined;
  readonly status: number;
  readonly code: Code | undefined;
  readonly faults: unknown[];
  /** Every byte and header of the answer. */
  readonly text: string;
}

const GOOD = toBinary(GetProjectRequestSchema, create(GetProjectRequestSchema, { projectId: "p" }));
/** A field of length three with one byte in it. */
const BAD = Uint8Array.of(0x0a, 0x03, 0x61);
const READ_MAX_BYTES = 2_000;

/** Runs one call through the protocol layer and what completes its errors, as the server does. */
async function responseTo(
  contentType: string,
  body: Uint8Array,
  behave: Behaviour = () => ({}),
  headers: Record<string, string> = {},
): Promise<Outcome> {
  const record: CallRecord = { requestId: "request-1", operation: "operation" };
  const reported: unknown[] = [];
  const report = (fault: unknown) => void reported.push(fault);
  const router = createConnectRouter({
    interceptors: [errorInterceptor(report)],
    acceptCompression: [compressionGzip],
    readMaxBytes: READ_MAX_BYTES,
    jsonOptions: { ...JSON_OPTIONS, ignoreUnknownFields: false },
  });
  router.rpc(ProjectService.method.getProject, behave);
  router.rpc(Health.method.watch, async function* () {
    yield behave();
  });
  const isStream = contentType.startsWith("application/connect+");
  const handle = router.handlers.find(({ method }) => method.name === (isStream ? "Watch" : "GetProject"));
  if (!handle) throw new Error("no such route");
  const reply = await handle({
    httpVersion: "2.0",
    url: `http://localhost${handle.requestPath}`,
    method: "POST",
    header: new Headers({ "content-type": contentType, ...headers }),
    body: (async function* () {
      yield body;
    })(),
    signal: new AbortController().signal,
    contextValues: createContextValues().set(callRecordKey, record),
  });
  const read = /^application\/(json|proto)$/.test(contentType) ? readUnary : readStream;
  return { ...(await read(reply, record, report)), code: record.code, faults: reported };
}

type Read = (
  reply: UniversalServerResponse,
  record: CallRecord,
  report: (fault: unknown) => void,
) => Promise<Pick<Outcome, "error" | "status" | "text">>;

const readUnary: Read = async (reply, record, report) => {
  const header = new Headers(reply.header);
  const body = await whole(reply.body as AsyncIterable<Uint8Array>);
  const complete = await completeUnaryError(reply.status, header, body, record, report);
  const bytes = header.has("content-encoding") ? gunzipSync(complete.body) : complete.body;
  const error =
    complete.status === 200 ? undefined : errorFromJsonBytes(bytes, undefined, new ConnectError(""));
  return {
    error,
    status: complete.status,
    text: JSON.stringify([...header]) + Buffer.from(bytes).toString(),
  };
};

const readStream: Read = async (reply, record, report) => {
  const res = completeError(reply, record, report);
  const body = await whole(res.body as AsyncIterable<Uint8Array>);
  const contentType = res.header?.get("content-type") ?? "";
  const text = () =>
    JSON.stringify([...(res.header ?? []), ...(res.trailer ?? [])]) + body.toString("latin1");
  if (contentType.startsWith("application/grpc-web")) {
    const { flags, data } = last(body);
    expect(flags).toBe(0x80);
    return { error: findTrailerError(trailerParse(data)), status: res.status, text: text() };
  }
  if (contentType.startsWith("application/grpc")) {
    return { error: findTrailerError(res.trailer ?? new Headers()), status: res.status, text: text() };
  }
  const { flags, data } = last(body);
  const end = endStreamFromJson(flags === 3 ? gunzipSync(data) : data);
  expect(flags & 2).toBe(2);
  return { error: end.error, status: res.status, text: text() };
};

const reason = ({ error }: Outcome) => error?.findDetails(ErrorDetailSchema)[0]?.reason;
const metadata = ({ error }: Outcome) => error?.findDetails(ErrorDetailSchema)[0]?.metadata;

/** Each protocol with how it carries one message of the request. */
const PROTOCOLS: readonly [
  name: string,
  contentType: string,
  carry: (data: Uint8Array, flags?: number) => Uint8Array,
][] = [
  ["a unary answer of Connect", "application/proto", (data) => data],
  ["a stream of Connect", "application/connect+proto", envelope],
  ["gRPC", "application/grpc+proto", envelope],
  ["gRPC-Web", "application/grpc-web+proto", envelope],
];

describe.each(PROTOCOLS)("in %s", (_, contentType, carry) => {
  /** The status of HTTP; all but unary Connect tell their errors inside of a 200. */
  const statusOf = (code: Code) => (contentType === "application/proto" ? codeToHttpStatus(code) : 200);

  test("an answer without an error stays as it is", async () => {
    const outcome = await responseTo(contentType, carry(GOOD));
    expect(outcome).toMatchObject({ error: undefined, status: 200, code: undefined, faults: [] });
  });

  test("binary that cannot be parsed is the caller's fault", async () => {
    const outcome = await responseTo(contentType, carry(BAD));
    expect(outcome).toMatchObject({
      error: { code: Code.InvalidArgument },
      status: statusOf(Code.InvalidArgument),
      code: Code.InvalidArgument,
      faults: [],
    });
    expect(outcome.error?.rawMessage).toMatch(/^parse binary: /);
    expect(reason(outcome)).toBe(ErrorReason.BODY_MALFORMED);
    expect(outcome.error?.details).toHaveLength(1);
  });

  test("a message past the cap is refused with the cap named", async () => {
    const outcome = await responseTo(contentType, carry(new Uint8Array(READ_MAX_BYTES + 1)));
    expect(outcome).toMatchObject({
      status: statusOf(Code.ResourceExhausted),
      code: Code.ResourceExhausted,
      faults: [],
    });
    expect(reason(outcome)).toBe(ErrorReason.BODY_TOO_LARGE);
    expect(metadata(outcome)).toEqual({ limit_bytes: String(READ_MAX_BYTES) });
  });

  const encoding = contentType.startsWith("application/grpc")
    ? "grpc-encoding"
    : contentType === "application/proto"
      ? "content-encoding"
      : "connect-content-encoding";

  test.each([
    ["is no gzip", () => Buffer.from("no gzip at all")],
    ["ends too early", () => gzipSync(GOOD).subarray(0, -4)],
    [
      "has a damaged byte",
      () => gzipSync(Buffer.alloc(99)).map((byte, at) => (at === 14 ? byte ^ 0xff : byte)),
    ],
  ])("a compressed message that %s is the caller's fault", async (__, bytes) => {
    const outcome = await responseTo(contentType, carry(bytes(), 1), undefined, { [encoding]: "gzip" });
    expect(outcome).toMatchObject({ code: Code.InvalidArgument, faults: [] });
    expect(reason(outcome)).toBe(ErrorReason.BODY_MALFORMED);
  });

  test("an unknown compression is a form that is not taken", async () => {
    const outcome = await responseTo(contentType, carry(GOOD, 1), undefined, { [encoding]: "br" });
    expect(outcome).toMatchObject({ code: Code.Unimplemented, faults: [] });
    expect(reason(outcome)).toBe(ErrorReason.TRANSPORT_UNSUPPORTED);
  });

  test("a deadline that cannot be read is the caller's fault", async () => {
    const header = contentType.startsWith("application/grpc") ? "grpc-timeout" : "connect-timeout-ms";
    const outcome = await responseTo(contentType, carry(GOOD), undefined, { [header]: "soon" });
    expect(outcome).toMatchObject({ code: Code.InvalidArgument, faults: [] });
    expect(reason(outcome)).toBe(ErrorReason.BODY_MALFORMED);
  });

  test("an error that says its reason stays as it is", async () => {
    const outcome = await responseTo(contentType, carry(GOOD), () => {
      throw new DomainError(ErrorReason.NOT_FOUND, "project not found", { resource: "project" });
    });
    expect(outcome).toMatchObject({
      error: { code: Code.NotFound, rawMessage: "project not found" },
      status: statusOf(Code.NotFound),
      code: Code.NotFound,
      faults: [],
    });
    expect(metadata(outcome)).toEqual({ resource: "project" });
    expect(outcome.error?.details).toHaveLength(1);
  });

  test("a fault of the operation leaves as an internal error and is reported once", async () => {
    const fault = new Error("a secret");
    const outcome = await responseTo(contentType, carry(GOOD), () => {
      throw fault;
    });
    expect(outcome).toMatchObject({
      error: { code: Code.Internal, rawMessage: "internal error" },
      status: statusOf(Code.Internal),
      code: Code.Internal,
      faults: [fault],
    });
    expect(metadata(outcome)).toEqual({ request_id: "request-1" });
    expect(outcome.text).not.toContain("secret");
  });

  test("an answer that cannot be written is a fault too, and is reported once", async () => {
    const unwritable = contentType.includes("connect+")
      ? { status: "secret" }
      : { project: { desiredPhase: "secret" } };
    const outcome = await responseTo(contentType, carry(GOOD), () => unwritable);
    expect(outcome).toMatchObject({
      error: { code: Code.Internal, rawMessage: "internal error" },
      status: statusOf(Code.Internal),
      code: Code.Internal,
    });
    expect(outcome.faults).toHaveLength(1);
    expect(metadata(outcome)).toEqual({ request_id: "request-1" });
    expect(outcome.text).not.toContain("secret");
  });
});

describe("in a unary answer of Connect in JSON", () => {
  const json = (text: string, headers?: Record<string, string>) =>
    responseTo("application/json", Buffer.from(text), undefined, headers);

  test.each(["", "{", "[]", "null", '{"projectId": 1}', '{"projectID": "p"}', '{"projectId": "\\ud800'])(
    "a body of %j is the caller's fault",
    async (text) => {
      const outcome = await json(text);
      expect(outcome).toMatchObject({ status: 400, code: Code.InvalidArgument, faults: [] });
      expect(reason(outcome)).toBe(ErrorReason.BODY_MALFORMED);
    },
  );

  test("an error so long that the protocol layer compresses it says its reason all the same", async () => {
    const outcome = await json(`{"${"long".repeat(400)}": 1}`, { "accept-encoding": "gzip" });
    expect(outcome).toMatchObject({ status: 400, code: Code.InvalidArgument, faults: [] });
    expect(reason(outcome)).toBe(ErrorReason.BODY_MALFORMED);
    expect(outcome.text).not.toContain("content-encoding");
  });

  test("a long error that says its reason stays compressed", async () => {
    const behave = () => {
      throw new DomainError(ErrorReason.NOT_FOUND, "long".repeat(400), { resource: "project" });
    };
    const outcome = await responseTo("application/json", Buffer.from("{}"), behave, {
      "accept-encoding": "gzip",
    });
    expect(outcome).toMatchObject({ status: 404, code: Code.NotFound, faults: [] });
    expect(reason(outcome)).toBe(ErrorReason.NOT_FOUND);
    expect(outcome.text).toContain('"content-encoding","gzip"');
  });
});

test("an answer of no known protocol stays as it is", () => {
  const record: CallRecord = { requestId: "request-1", operation: "operation" };
  const res: UniversalServerResponse = { status: 415, header: new Headers({ "content-type": "text/plain" }) };
  const report = () => {
    throw new Error("nothing to report");
  };
  expect(completeError(res, record, report)).toBe(res);
  const withBody = { ...res, body: (async function* () {})() };
  expect(completeError(withBody, record, report)).toBe(withBody);
  expect(record.code).toBeUndefined();
});
