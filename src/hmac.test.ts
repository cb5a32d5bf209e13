import { createHmac, randomBytes } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { Hmac } from "./hmac.ts";

const hex = (key: Uint8Array, value: string | Uint8Array) => new Hmac(key).mac(value).toString("hex");

describe("HMAC-SHA256 gives what RFC 4231 says", () => {
  test.each([
    [Buffer.alloc(20, 0x0b), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"],
    [
      Buffer.from("Jefe"),
      "what do ya want for nothing?",
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    ],
    [
      Buffer.alloc(20, 0xaa),
      Buffer.alloc(50, 0xdd),
      "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
    ],
  ])("test case %#", (key, value, expected) => {
    expect(hex(key, value)).toBe(expected);
  });
});

test("any key and any value give what Node's own gives", () => {
  const expected = (key: Uint8Array, value: string | Uint8Array) =>
    createHmac("sha256", key).update(value).digest("hex");
  for (let length = 0; length <= 300; length++) {
    const [key, value] = [randomBytes(length % 65), randomBytes(length)];
    expect(hex(key, value)).toBe(expected(key, value));
  }
  for (const text of ["", "quay", "größer 船", "half a pair: \ud800", "x".repeat(100_000)]) {
    const key = randomBytes(32);
    expect(hex(key, text)).toBe(expected(key, text));
  }
});

test("a key has at most 64 bytes", () => {
  expect(hex(Buffer.alloc(64, 1), "x")).toBe(
    createHmac("sha256", Buffer.alloc(64, 1)).update("x").digest("hex"),
  );
  expect(() => new Hmac(Buffer.alloc(65, 1))).toThrow();
});

test("what was made before stays as it was, and does not show in what follows", () => {
  const key = new Hmac(Buffer.alloc(32, 1));
  const first = key.mac("first");
  const kept = Buffer.from(first);
  key.mac("second");
  expect(first).toEqual(kept);
  for (const length of [4_095, 4_096, 4_097, 10, 0]) {
    const value = randomBytes(length);
    expect(key.mac(value)).toEqual(createHmac("sha256", Buffer.alloc(32, 1)).update(value).digest());
  }
});
