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

const expected = (key: Uint8Array, value: string | Uint8Array) =>
  createHmac("sha256", key).update(value).digest("hex");

test.each([0, 1, 31, 32, 33, 63, 64])(
  "a key of %i bytes gives what Node's own gives, for any value",
  (size) => {
    const key = randomBytes(size);
    for (let length = 0; length <= 200; length++) {
      const value = randomBytes(length);
      expect(hex(key, value)).toBe(expected(key, value));
    }
    for (const length of [4_031, 4_032, 4_033, 4_095, 4_096, 4_097, 100_000]) {
      const value = randomBytes(length);
      expect(hex(key, value)).toBe(expected(key, value));
    }
  },
);

test.each(["", "quay", "größer", "船", "🚢", "half a pair: \ud800"])("text is taken as UTF-8: %j", (text) => {
  const key = randomBytes(32);
  for (const times of [1, 2, 340, 341, 342, 683, 1_365, 1_366, 4_096]) {
    const value = text.repeat(times);
    expect(hex(key, value)).toBe(expected(key, value));
    expect(hex(key, `x${value}`)).toBe(expected(key, `x${value}`));
  }
});

test("a key has at most 64 bytes", () => {
  expect(() => new Hmac(Buffer.alloc(65, 1))).toThrow("at most 64 bytes");
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
