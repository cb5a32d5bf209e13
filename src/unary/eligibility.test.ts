import { describe, expect, test } from "@jest/globals";
import type { UnaryOperation } from "../rpc/routes.ts";
import { ConnectForm } from "./connect-form.ts";
import { isEligible } from "./eligibility.ts";
import { GRPC_FORM } from "./grpc-form.ts";
import type { HttpRequest } from "./unary-call.ts";

const LIMIT = 1_000;
const PLAIN = { "content-type": "application/json", "content-length": "2" };

const look = (headers: Record<string, string | undefined>, method = "POST", httpVersionMajor = 1) =>
  isEligible(
    { method, headers, httpVersionMajor } as unknown as HttpRequest,
    { requests: { limitBytes: LIMIT } } as UnaryOperation,
  );

describe("the unary path takes", () => {
  test.each([
    ["application/json", false],
    ["application/json; charset=utf-8", false],
    ["application/proto", true],
  ])("%s", (contentType, isBinary) => {
    const found = look({ ...PLAIN, "content-type": contentType });
    expect(found).toEqual({ form: new ConnectForm(isBinary, 2), timeoutMs: undefined });
  });

  test.each([
    ["0", 0],
    ["5000", 5_000],
    ["9999999999", 9_999_999_999],
  ])("a deadline of %s ms", (timeout, timeoutMs) => {
    expect(look({ ...PLAIN, "connect-timeout-ms": timeout })).toMatchObject({ timeoutMs });
  });

  test.each([0, LIMIT - 1, LIMIT])("a body of %d bytes", (lengthBytes) => {
    expect(look({ ...PLAIN, "content-length": String(lengthBytes) })).toEqual({
      form: new ConnectForm(false, lengthBytes),
      timeoutMs: undefined,
    });
  });

  test("identity as an encoding, and the version of the protocol", () => {
    const headers = { ...PLAIN, "content-encoding": "identity", "connect-protocol-version": "1" };
    expect(look(headers)).toBeDefined();
  });
});

describe("of gRPC the unary path takes", () => {
  const GRPC = { "content-type": "application/grpc" };
  const lookGrpc = (headers: Record<string, string | undefined>) => look({ ...GRPC, ...headers }, "POST", 2);

  test.each<[Record<string, string>, number | undefined]>([
    [{}, undefined],
    [{ "content-type": "application/grpc+proto" }, undefined],
    [{ "grpc-encoding": "identity" }, undefined],
    [{ "grpc-timeout": "5S" }, 5_000],
    [{ "grpc-timeout": "500u" }, 0.5],
  ])("%j", (headers, timeoutMs) => {
    expect(lookGrpc(headers)).toEqual({ form: GRPC_FORM, timeoutMs });
  });

  test.each<Record<string, string>>([
    { "content-type": "application/grpc+json" },
    { "content-type": "application/grpc-web+proto" },
    { "content-type": "Application/gRPC" },
    { "grpc-encoding": "gzip" },
    { "grpc-encoding": "" },
    { "grpc-timeout": "5" },
    { "grpc-timeout": "-1S" },
  ])("not %j", (headers) => {
    expect(lookGrpc(headers)).toBeUndefined();
  });

  test("no other method, and nothing over HTTP/1.1", () => {
    expect(look(GRPC, "GET", 2)).toBeUndefined();
    expect(look(GRPC, "POST", 1)).toBeUndefined();
  });
});

describe("the unary path leaves to the protocol layer", () => {
  test.each<Record<string, string | undefined>>([
    { "content-type": undefined },
    { "content-type": "application/grpc" },
    { "content-type": "application/connect+json" },
    { "content-type": "application/json;charset=utf-16" },
    { "content-type": "text/plain" },
    { "content-encoding": "gzip" },
    { "content-encoding": "" },
    { "content-length": undefined },
    { "content-length": String(LIMIT + 1) },
    { "content-length": "2, 2" },
    { "content-length": "1e2" },
    { "content-length": "" },
    { "transfer-encoding": "chunked" },
    { "connect-timeout-ms": "" },
    { "connect-timeout-ms": "-1" },
    { "connect-timeout-ms": "1.5" },
    { "connect-timeout-ms": "99999999999" },
    { "connect-timeout-ms": "abc" },
    { "connect-protocol-version": "2" },
  ])("%j", (headers) => {
    expect(look({ ...PLAIN, ...headers })).toBeUndefined();
  });

  test.each(["GET", "PUT", "OPTIONS"])("%s", (method) => {
    expect(look(PLAIN, method)).toBeUndefined();
  });
});
