import { readFileSync } from "node:fs";
import { join } from "node:path";
import { create, type MessageShape } from "@bufbuild/protobuf";
import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { describe, expect, test } from "@jest/globals";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { GetProjectRequestSchema } from "#gen/service/v1/project_service_pb.js";
import { accountBlocked, DomainError, unauthenticated } from "../../domain/error.ts";
import { StoreUnavailable } from "../../store/store.ts";
import { createCheck } from "../check.ts";
import { CODE_OF_REASON, hasReason, toConnectError, writeConnectError } from "./error.ts";

const CALL = { requestId: "request-1", operation: "service.v1.ProjectService/GetProject" };

/** The error that leaves, and what was reported. */
function leaving(thrown: unknown) {
  const reported: unknown[] = [];
  const error = toConnectError(thrown, CALL, (fault, call) => {
    expect(call).toBe(CALL);
    reported.push(fault);
  });
  return { error, reported };
}

const details = (error: ConnectError) => error.findDetails(ErrorDetailSchema);
const detail = (reason: ErrorReason, metadata: Record<string, string> = {}) => [
  create(ErrorDetailSchema, { reason, metadata }),
];

describe("the table from reasons to codes", () => {
  const contract = readFileSync(
    join(import.meta.dirname, "../../../proto/service/v1/error_reason.proto"),
    "utf8",
  );
  const documented = [...contract.matchAll(/((?: +\/\/.*\n)+) +ERROR_REASON_(\w+) = \d+;/g)].map(
    ([, comment = "", name]) =>
      [name, /Code\s+(\w+)\./.exec(comment.replaceAll(/\s*\/\//g, ""))?.[1]] as const,
  );

  test("gives each reason the code that the contract states for it", () => {
    const table = Object.entries(CODE_OF_REASON).map(
      ([reason, code]) => [ErrorReason[Number(reason)], codeToString(code)] as const,
    );
    expect(new Map(documented)).toEqual(new Map([...table, ["UNSPECIFIED", undefined]]));
    expect(documented.length).toBeGreaterThan(15);
  });
});

describe("an error of the domain", () => {
  test("asks for a token when one is missing, and only then", () => {
    const challenge = (thrown: DomainError) => leaving(thrown).error.metadata.get("www-authenticate");
    expect(challenge(unauthenticated())).toBe('Bearer realm="chartroom"');
    expect(challenge(accountBlocked())).toBeNull();
  });

  test("leaves with its code, its words, its reason and its facts, and is no fault to report", () => {
    const thrown = new DomainError(ErrorReason.IN_USE, "environments still run on it", {
      resource: "runner",
    });
    const { error, reported } = leaving(thrown);
    expect([error.code, error.rawMessage]).toEqual([Code.FailedPrecondition, "environments still run on it"]);
    expect(details(error)).toEqual(detail(ErrorReason.IN_USE, { resource: "runner" }));
    expect(error.details).toHaveLength(1);
    expect(reported).toEqual([]);
  });

  test("leaves with its violations when it is a broken rule", () => {
    const thrown = (() => {
      try {
        createCheck()(GetProjectRequestSchema, create(GetProjectRequestSchema, { projectId: "none" }));
      } catch (error) {
        return error;
      }
    })();
    const { error, reported } = leaving(thrown);
    expect(error.code).toBe(Code.InvalidArgument);
    expect(details(error)).toEqual(detail(ErrorReason.CONSTRAINT_VIOLATED, { violations: "1" }));
    const [violations] = error.findDetails(ViolationsSchema) as MessageShape<typeof ViolationsSchema>[];
    expect(violations?.violations).toHaveLength(1);
    expect(violations?.violations[0]).toMatchObject({
      ruleId: "string.uuid",
      field: { elements: [{ fieldName: "project_id", fieldNumber: 1 }] },
    });
    expect(reported).toEqual([]);
  });
});

describe("what nobody foresaw", () => {
  test.each<[string, unknown]>([
    ["an error", new Error("the secret is cr_pat_x")],
    ["an error of a library", Object.assign(new TypeError("secret"), { code: "SQLITE_CORRUPT" })],
    ["a text", "secret"],
    ["nothing", undefined],
    ["null", null],
    ["an object", { message: "secret" }],
  ])("leaves as an internal error with the request's id, and is reported once: %s", (_, thrown) => {
    const { error, reported } = leaving(thrown);
    expect([error.code, error.rawMessage]).toEqual([Code.Internal, "internal error"]);
    expect(details(error)).toEqual(detail(ErrorReason.INTERNAL, { request_id: "request-1" }));
    expect(error.cause).toBeUndefined();
    expect(reported).toEqual([thrown]);
  });

  test.each([Code.Internal, Code.Unknown])(
    "does so also as an error of the protocol layer with code %i",
    (code) => {
      const thrown = new ConnectError("serialize binary: secret", code);
      const { error, reported } = leaving(thrown);
      expect([error.code, error.rawMessage]).toEqual([Code.Internal, "internal error"]);
      expect(details(error)).toEqual(detail(ErrorReason.INTERNAL, { request_id: "request-1" }));
      expect(reported).toEqual([thrown]);
    },
  );

  test("leaves as unavailable when the database does not take a write, and is reported once", () => {
    const thrown = new StoreUnavailable("secret", { cause: new Error("disk full") });
    const { error, reported } = leaving(thrown);
    expect(error.code).toBe(Code.Unavailable);
    expect(error.rawMessage).not.toContain("secret");
    expect(details(error)).toEqual(detail(ErrorReason.UNAVAILABLE));
    expect(reported).toEqual([thrown]);
  });
});

describe("an error of the protocol layer", () => {
  test.each<[Code, string, Code, ErrorReason]>([
    [Code.InvalidArgument, "cannot decode field", Code.InvalidArgument, ErrorReason.BODY_MALFORMED],
    [Code.Internal, "parse binary: premature EOF", Code.InvalidArgument, ErrorReason.BODY_MALFORMED],
    [Code.Internal, "decompression failed", Code.InvalidArgument, ErrorReason.BODY_MALFORMED],
    [
      Code.Internal,
      "received compressed envelope, but do not know how to decompress",
      Code.InvalidArgument,
      ErrorReason.BODY_MALFORMED,
    ],
    [Code.Unimplemented, "unknown compression", Code.Unimplemented, ErrorReason.TRANSPORT_UNSUPPORTED],
    [Code.ResourceExhausted, "too much", Code.ResourceExhausted, ErrorReason.BODY_TOO_LARGE],
  ])(
    "with code %i (%s) leaves with code %i and reason %i, and is not reported",
    (code, message, left, reason) => {
      const { error, reported } = leaving(new ConnectError(message, code));
      expect([error.code, error.rawMessage]).toEqual([left, message]);
      expect(details(error)).toEqual(detail(reason));
      expect(reported).toEqual([]);
    },
  );

  test.each([
    "message size is larger than configured readMaxBytes 1024",
    "message size 2048 is larger than configured readMaxBytes 1024",
    "message is larger than configured readMaxBytes 1024 after decompression",
  ])("about a body that is too large tells the limit: %s", (message) => {
    const { error } = leaving(new ConnectError(message, Code.ResourceExhausted));
    expect(details(error)).toEqual(detail(ErrorReason.BODY_TOO_LARGE, { limit_bytes: "1024" }));
    expect(error.rawMessage).toBe("the request is larger than the 1024 bytes that the operation takes");
  });

  test("about a deadline has words of our own", () => {
    const { error } = leaving(new ConnectError("the operation timed out", Code.DeadlineExceeded));
    expect([error.code, error.rawMessage]).toEqual([
      Code.DeadlineExceeded,
      "the deadline of the request passed",
    ]);
    expect(details(error)).toEqual(detail(ErrorReason.DEADLINE_EXCEEDED));
  });

  test.each([Code.Canceled, Code.Aborted, Code.Unavailable])(
    "with code %i is nobody's fault and stays",
    (code) => {
      const thrown = new ConnectError("gone", code);
      expect(leaving(thrown)).toEqual({ error: thrown, reported: [] });
    },
  );

  test("that says its reason already stays as it is, whatever its code", () => {
    const thrown = writeConnectError(ErrorReason.INTERNAL, "internal error", { request_id: "request-0" });
    const { error, reported } = leaving(thrown);
    expect(error).toBe(thrown);
    expect(reported).toEqual([]);
  });
});

describe("whether an error says its reason", () => {
  test("is seen in its own details and in those that came over the wire", () => {
    const plain = new ConnectError("x", Code.Internal);
    const other = new ConnectError("x", Code.Internal);
    other.details.push({ type: "google.rpc.Help", value: new Uint8Array() });
    const wired = new ConnectError("x", Code.Internal);
    wired.details.push({ type: "service.v1.ErrorDetail", value: new Uint8Array() });
    expect([plain, other, wired, writeConnectError(ErrorReason.NOT_FOUND, "x")].map(hasReason)).toEqual([
      false,
      false,
      true,
      true,
    ]);
  });
});

describe("what the engine says at an end of its own", () => {
  test.each([
    new ConnectError("Maximum call stack size exceeded", Code.InvalidArgument),
    new ConnectError("parse binary: Maximum call stack size exceeded", Code.Internal),
    new ConnectError("Invalid string length", Code.InvalidArgument),
    new RangeError("Maximum call stack size exceeded"),
  ])("reaches no caller: %s", (thrown) => {
    const { error, reported } = leaving(thrown);
    expect([error.code, error.rawMessage]).toEqual([Code.Internal, "internal error"]);
    expect(details(error)).toEqual(detail(ErrorReason.INTERNAL, { request_id: CALL.requestId }));
    expect(reported).toEqual([thrown]);
  });
});
