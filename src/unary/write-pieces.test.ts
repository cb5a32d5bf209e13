import { describe, expect, test } from "@jest/globals";
import { PIECE_BYTES, piecesOf } from "./write-pieces.ts";

const together = (body: Parameters<typeof piecesOf>[0]) => Buffer.concat([...piecesOf(body)]);

describe("the pieces of a body", () => {
  test.each([
    ["small texts", ["a", "", "bc"]],
    ["letters of three bytes", ["€".repeat(PIECE_BYTES)]],
    [
      "characters of two halves, at even places and at odd",
      ["😀".repeat(PIECE_BYTES), "x", "😀".repeat(PIECE_BYTES)],
    ],
    ["many texts", Array.from({ length: 100 }, (_, index) => `${index}${"x".repeat(4_000)}`)],
  ])("of %s are the same bytes, none of them large", (_, texts) => {
    expect(together(texts).equals(Buffer.from(texts.join("")))).toBe(true);
    expect(together(texts.join("")).equals(Buffer.from(texts.join("")))).toBe(true);
    expect(Math.max(...[...piecesOf(texts)].map(({ length }) => length))).toBeLessThanOrEqual(PIECE_BYTES);
  });

  test.each([0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1])(
    "of %d bytes are parts of them",
    (length) => {
      const bytes = new Uint8Array(length).fill(7);
      expect(together(bytes).equals(bytes)).toBe(true);
      expect([...piecesOf(bytes)]).toHaveLength(Math.ceil(length / PIECE_BYTES));
    },
  );
});
