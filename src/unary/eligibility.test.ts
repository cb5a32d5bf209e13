import { describe, expect, test } from "@jest/globals";
import type { UnaryOperation } from "../rpc/routes.ts";
import { isEligible } from "./eligibility.ts";
import type { HttpRequest } from "./unary-call.ts";

const LIMIT = 1_000;
const PLAIN = { "content-type": "application/json", "content-length": "2" };

const look = (headers: Record<string, string | undefined>, method = "POST") =>
  isEligible(
    { method, headers } as unknown as HttpRequest,
    { requests: { limitBytes: LIMIT } } as UnaryOperation,
  );

describe("the unary path takes", () => {
  test.each([
    ["application/json", false],
    ["application/json; charset=utf-8", false],
    ["application/proto", true],
  ])("%s", (contentType, isBinary) => {
    const found = look({ ...PLAIN, "content-type": contentType });
    expect(found).toEqual({ isBinary, lengthBytes: 2, timeoutMs: undefined });
  });

  test.each([
    ["0", 0],
    ["5000", 5_000],
    ["9999999999", 9_999_999_999],
  ])("a deadline of %s ms", (timeout, timeoutMs) => {
    expect(look({ ...PLAIN, "connect-timeout-ms": timeout })).toMatchObject({ timeoutMs });
  });

  test.each([0, LIMIT - 1, LIMIT])("a body of %d bytes", (lengthBytes) => {
    expect(look({ ...PLAIN, "content-length": String(lengthBytes) })).toMatchObject({ lengthBytes });
  });

  test("identity as an encoding, and the version of the protocol", () => {
    const headers = { ...PLAIN, "content-encoding": "identity", "connect-protocol-version": "1" };
    expect(look(headers)).toBeDefined();
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
