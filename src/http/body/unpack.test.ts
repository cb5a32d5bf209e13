import { gzipSync } from "node:zlib";
import { expect, test } from "@jest/globals";
import { BodyBudget } from "./body-budget.ts";
import { unpack } from "./unpack.ts";

const MIB = 1024 * 1024;
const BODY = Buffer.alloc(300_000, "a body of three hundred thousand bytes ");
const now = () => 0;
/** Returns a new packed body each time, since `unpack` takes over its memory. */
const pack = () => new Uint8Array(gzipSync(BODY));
const packedBytes = pack().length;

test.each([-1, 0, 1])(
  "a body is counted as what it is, packed and unpacked: a budget %d larger",
  async (more) => {
    const bytes = packedBytes + BODY.length + more;
    const hold = new BodyBudget({ callerBytes: bytes, totalBytes: bytes, now }).hold("a");
    const unpacked = unpack(pack(), MIB, hold);
    if (more < 0) await expect(unpacked).rejects.toThrow("[resource_exhausted] your requests");
    else expect(Buffer.compare(await unpacked, BODY)).toBe(0);
  },
);

test.each([-1, 0, 1])("a body unpacks to the last byte of its limit: %d past it", async (past) => {
  const hold = new BodyBudget({ callerBytes: MIB, totalBytes: MIB, now }).hold("a");
  const unpacked = unpack(pack(), BODY.length - past, hold);
  if (past > 0) await expect(unpacked).rejects.toThrow("[resource_exhausted]");
  else expect((await unpacked).length).toBe(BODY.length);
});

test("what is no gzip is the sender's fault", async () => {
  const hold = new BodyBudget({ callerBytes: MIB, totalBytes: MIB, now }).hold("a");
  await expect(unpack(new Uint8Array(100), MIB, hold)).rejects.toThrow(
    "[invalid_argument] decompression failed",
  );
  expect(await unpack(new Uint8Array(), MIB, hold)).toEqual(new Uint8Array());
});

test("what was packed is let go of", async () => {
  const packed = pack();
  const hold = new BodyBudget({ callerBytes: MIB, totalBytes: MIB, now }).hold("a");
  expect(Buffer.compare(await unpack(packed, MIB, hold), BODY)).toBe(0);
  expect(packed.buffer.detached).toBe(true);
});
