import { randomBytes } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { type AssociatedData, openWith, sealWith } from "./keys.ts";

const key = randomBytes(32);
const place: AssociatedData = {
  table: "host_token",
  row: "0190c0de-0000-7000-8000-000000000001",
  column: "sealed_token",
};

/** Nonce and authentication tag, as AES-256-GCM wants them. */
const OVERHEAD_BYTES = 12 + 16;

describe("a sealed value", () => {
  test.each(["", "x", "a credential", "ключ 🗝 \u0000 \n", "x".repeat(16_384)])(
    "opens in its place with its key to what it was: %#",
    (value) => {
      const sealed = sealWith(key, value, place);
      expect(openWith(key, sealed, place)).toBe(value);
      expect(sealed).toHaveLength(OVERHEAD_BYTES + Buffer.byteLength(value));
    },
  );

  test("shows nothing of what it was", () => {
    const sealed = sealWith(key, "a credential that is easy to see", place);
    expect(sealed.toString("latin1")).not.toMatch(/credential|easy|host_token|0190c0de/);
  });

  test("has a nonce of its own each time, and so another form", () => {
    const all = Array.from({ length: 10_000 }, () => sealWith(key, "value", place));
    expect(new Set(all.map((sealed) => sealed.toString("hex", 0, 12))).size).toBe(all.length);
    expect(new Set(all.map((sealed) => sealed.toString("hex", OVERHEAD_BYTES))).size).toBeGreaterThan(
      all.length - 10,
    );
  });

  test.each<[string, AssociatedData]>([
    ["table", { ...place, table: "token" }],
    ["row", { ...place, row: "0190c0de-0000-7000-8000-000000000002" }],
    ["column", { ...place, column: "sealed_refresh_token" }],
    [
      "place whose names run together the same",
      { ...place, table: "host_token0190", row: place.row.slice(4) },
    ],
  ])("does not open in another %s", (_, other) => {
    const sealed = sealWith(key, "value", place);
    expect(() => openWith(key, sealed, other)).toThrow();
  });

  test("does not open with another key", () => {
    expect(() => openWith(randomBytes(32), sealWith(key, "value", place), place)).toThrow();
  });

  test("does not open when any bit of it is another", () => {
    const sealed = sealWith(key, "value", place);
    let opened = 0;
    for (let at = 0; at < sealed.length * 8; at++) {
      const changed = Buffer.from(sealed);
      changed.writeUInt8(changed.readUInt8(at >> 3) ^ (1 << (at & 7)), at >> 3);
      try {
        openWith(key, changed, place);
        opened += 1;
      } catch {
        // Expected: the test asserts that no value can be opened.
      }
    }
    expect(opened).toBe(0);
  });

  test("does not open when it is cut short or longer", () => {
    const sealed = sealWith(key, "value", place);
    const others = [
      ...Array.from({ length: sealed.length }, (_, length) => sealed.subarray(0, length)),
      Buffer.concat([sealed, Buffer.from([0])]),
    ];
    for (const other of others) expect(() => openWith(key, other, place)).toThrow();
  });
});
