import { describe, expect, test } from "@jest/globals";
import { freeChunk, join, releaseBuffer } from "./free-chunk.ts";

describe("the memory of a piece", () => {
  test.each([
    [1, true],
    [2, false],
  ])("of HTTP/%d is given back: %s", (httpVersionMajor, isGiven) => {
    const chunk = new Uint8Array(10);
    freeChunk({ httpVersionMajor }, chunk);
    expect(chunk.buffer.detached).toBe(isGiven);
  });

  test("that is a part of other memory is left alone", () => {
    const memory = new Uint8Array(10);
    releaseBuffer(memory.subarray(1));
    expect(memory).toHaveLength(10);
  });
});

test("pieces are put together in their order, and none is there any more when the next is copied", () => {
  const pieces = [new Uint8Array([1, 2]), new Uint8Array(), new Uint8Array([3])];
  const left: number[] = [];
  const whole = join(pieces, 3, (piece) => {
    releaseBuffer(piece);
    left.push(pieces.filter(({ buffer }) => !buffer.detached).length);
  });
  expect([...whole]).toEqual([1, 2, 3]);
  expect(left).toEqual([2, 1, 0]);
});
