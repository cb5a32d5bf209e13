import { describe, expect, test } from "@jest/globals";
import { capDeadline, deadlineMs } from "./deadline.ts";

const CAP_MS = 300_000;

/** Returns the header after the cap; undefined when there is none. */
function capped(name: "grpc-timeout" | "connect-timeout-ms", value: string, maxMs = CAP_MS): unknown {
  const headers = { [name]: value, other: "x" };
  capDeadline(headers, maxMs);
  expect(Object.keys(headers).sort()).toEqual([name, "other"].sort());
  expect(headers.other).toBe("x");
  return headers[name];
}

describe("a deadline in the Connect protocol", () => {
  test.each(["0", "1", "299999", "300000", "0000000007"])("of %s ms stays below or at the cap", (value) => {
    expect(capped("connect-timeout-ms", value)).toBe(value);
  });

  test.each(["300001", "9999999999"])("of %s ms becomes the cap", (value) => {
    expect(capped("connect-timeout-ms", value)).toBe("300000");
  });

  test.each(["", "99999999999", "-1", "1.5", "1e9", " 400000", "400000 ", "400000ms", "soon", "٤٠٠٠٠٠"])(
    "that is malformed (%j) stays for the protocol layer to refuse",
    (value) => {
      expect(capped("connect-timeout-ms", value)).toBe(value);
    },
  );
});

describe("a deadline in gRPC", () => {
  test.each([
    ["H", "1", "2", 3_600_000],
    ["M", "5", "6", 300_000],
    ["S", "300", "301", 300_000],
    ["m", "300000", "300001", 300_000],
    ["u", "99999000", "99999001", 99_999],
    ["n", "99000000", "99000001", 99],
  ])("in the unit %s stays at the cap (%s) and becomes the cap above it (%s)", (unit, at, above, maxMs) => {
    expect(capped("grpc-timeout", `${at}${unit}`, maxMs)).toBe(`${at}${unit}`);
    expect(capped("grpc-timeout", `${Number(at) - 1}${unit}`, maxMs)).toBe(`${Number(at) - 1}${unit}`);
    expect(capped("grpc-timeout", `${above}${unit}`, maxMs)).toBe(`${maxMs}m`);
    expect(capped("grpc-timeout", `0${unit}`, maxMs)).toBe(`0${unit}`);
  });

  test.each(["H", "M", "S", "m"])(
    "of the most that can be written in the unit %s becomes the cap",
    (unit) => {
      expect(capped("grpc-timeout", `99999999${unit}`)).toBe("300000m");
    },
  );

  test.each(["u", "n"])("of the most that can be written in the unit %s is below the cap", (unit) => {
    expect(capped("grpc-timeout", `99999999${unit}`)).toBe(`99999999${unit}`);
  });

  test("is still well-formed at the longest cap that can be set, a day", () => {
    expect(capped("grpc-timeout", "25H", 86_400_000)).toMatch(/^\d{1,8}m$/);
  });

  test.each(["", "H", "999999999H", "400000", "400000s", "1h", "-1H", "1.5H", " 9H", "9H ", "9HH", "9H,9H"])(
    "that is malformed (%j) stays for the protocol layer to refuse",
    (value) => {
      expect(capped("grpc-timeout", value)).toBe(value);
    },
  );
});

describe("headers", () => {
  test("without a deadline get none", () => {
    const headers = { accept: "x" };
    capDeadline(headers, CAP_MS);
    expect(headers).toEqual({ accept: "x" });
  });

  test("with the deadlines of both protocols have both capped", () => {
    const headers = { "connect-timeout-ms": "400000", "grpc-timeout": "9H" };
    capDeadline(headers, CAP_MS);
    expect(headers).toEqual({ "connect-timeout-ms": "300000", "grpc-timeout": "300000m" });
  });

  test("that carry it more than once stay for the protocol layer to refuse", () => {
    const headers = { "grpc-timeout": ["9H", "9H"] };
    capDeadline(headers, CAP_MS);
    expect(headers).toEqual({ "grpc-timeout": ["9H", "9H"] });
  });
});

describe("the time that a request gives itself", () => {
  const JSON_TYPE = { "content-type": "application/json" };
  const GRPC_TYPE = { "content-type": "application/grpc-web+proto" };

  test.each([
    ["0", 0],
    ["1500", 1_500],
    ["9999999999", 9_999_999_999],
  ])("is %s ms in Connect as written", (value, ms) => {
    expect(deadlineMs({ ...JSON_TYPE, "connect-timeout-ms": value })).toBe(ms);
  });

  test.each([
    ["2H", 7_200_000],
    ["3M", 180_000],
    ["4S", 4_000],
    ["5m", 5],
    ["6000u", 6],
    ["7000000n", 7],
    ["0n", 0],
  ])("is %s in gRPC in its unit", (value, ms) => {
    expect(deadlineMs({ ...GRPC_TYPE, "grpc-timeout": value })).toBeCloseTo(ms, 9);
  });

  test("is not known when nothing, or nothing that can be read, is said", () => {
    expect(deadlineMs({})).toBeUndefined();
    expect(deadlineMs(JSON_TYPE)).toBeUndefined();
    expect(deadlineMs(GRPC_TYPE)).toBeUndefined();
    for (const value of ["", "soon", "-1", "1.5", "99999999999"]) {
      expect(deadlineMs({ ...JSON_TYPE, "connect-timeout-ms": value })).toBeUndefined();
      expect(deadlineMs({ ...GRPC_TYPE, "grpc-timeout": value })).toBeUndefined();
    }
  });

  test("is the one of the protocol that the request speaks", () => {
    const headers = { "connect-timeout-ms": "1", "grpc-timeout": "2S" };
    expect(deadlineMs({ ...JSON_TYPE, ...headers })).toBe(1);
    expect(deadlineMs({ ...GRPC_TYPE, ...headers })).toBe(2_000);
  });
});
