import { expect, test } from "@jest/globals";
import { ArrivingBytes } from "./arriving-bytes.ts";

const KIB = 1024;
const BYTES = Buffer.from(Array.from({ length: 1_000 * KIB }, (_, index) => (index * 7) % 251));

test("bytes that were promised take no memory, those that came at most four times theirs", () => {
  const bytes = new ArrivingBytes(60 * KIB * KIB);
  for (const piece of [1, 64, 65, 200, 600]) bytes.add(BYTES.subarray(0, piece * KIB));
  expect(bytes.missing).toBe((60 * KIB - 930) * KIB);
  expect(bytes.capacity).toBeLessThanOrEqual(4 * 930 * KIB);
});

test.each([1, 1_000, 64 * KIB, 300 * KIB])("whatever the pieces, the bytes are whole memory: %d", (size) => {
  const bytes = new ArrivingBytes(BYTES.length);
  for (let at = 0; at < BYTES.length; at += size) bytes.add(BYTES.subarray(at, at + size));
  const taken = bytes.take();
  expect(Buffer.compare(taken, BYTES)).toBe(0);
  expect(taken.buffer.byteLength).toBe(BYTES.length);
  bytes.free();
  expect(taken.buffer.detached).toBe(true);
});

test("bytes that broke off are those that came", () => {
  const bytes = new ArrivingBytes(BYTES.length);
  bytes.add(BYTES.subarray(0, 100));
  expect(Buffer.compare(bytes.take(), BYTES.subarray(0, 100))).toBe(0);
});
