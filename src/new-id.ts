import { randomFillSync } from "node:crypto";
import { v7 } from "uuid";

/**
 * Random bytes of one id. By default the package requests them from the system for
 * each id, which takes two thirds of its time.
 */
const RANDOM_BYTES = 16;

/** Number of ids for which random bytes are requested at once; each byte is used once. */
const IDS_PER_POOL = 256;

const HYPHEN = 0x2d;

/** Bytes after which the text of an id has a hyphen. */
const ENDS_OF_GROUPS = [4, 6, 8, 10];

const DIGITS = Buffer.from("0123456789abcdef");

/**
 * Returns a function that formats the bytes of an id as text in a reused buffer. Joining strings would leave nearly a
 * KiB of garbage for each id, and each of the twenty actions of a workflow start creates three ids.
 */
function idWriter(): (bytes: Uint8Array) => string {
  const text = Buffer.alloc(36, HYPHEN);
  return (bytes) => {
    let at = 0;
    let index = 0;
    for (const byte of bytes) {
      if (ENDS_OF_GROUPS.includes(index)) at += 1;
      text[at] = DIGITS[byte >> 4] ?? 0;
      text[at + 1] = DIGITS[byte & 15] ?? 0;
      at += 2;
      index += 1;
    }
    return text.toString("latin1");
  };
}

/**
 * Creates a generator of ids: UUID v7 in lower case. Each sorts after the previous
 * one, even within a millisecond and when the clock is set back.
 *
 * @param now milliseconds since 1970 UTC
 */
export function idMaker(now: () => number): () => string {
  const pool = new Uint8Array(IDS_PER_POOL * RANDOM_BYTES);
  const parts = Array.from({ length: IDS_PER_POOL }, (_, index) =>
    pool.subarray(index * RANDOM_BYTES, (index + 1) * RANDOM_BYTES),
  );
  const bytes = new Uint8Array(RANDOM_BYTES);
  const textOf = idWriter();
  let used = IDS_PER_POOL;
  let msecs = Number.NEGATIVE_INFINITY;
  let seq = 0;
  return () => {
    if (used === IDS_PER_POOL) {
      randomFillSync(pool);
      used = 0;
    }
    const random = parts[used++] as Uint8Array;
    const at = now();
    if (at > msecs) {
      msecs = at;
      // 31 of 32 bits, so that the counter can grow.
      seq = new DataView(random.buffer, random.byteOffset).getUint32(0) >>> 1;
    } else {
      seq = (seq + 1) >>> 0;
      if (seq === 0) msecs += 1;
    }
    return textOf(v7({ random, msecs, seq }, bytes));
  };
}
