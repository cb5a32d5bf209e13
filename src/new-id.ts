import { randomFillSync } from "node:crypto";
import { v7 } from "uuid";

/**
 * Random bytes of one id; the package's own default asks the system for them id
 * by id, two thirds of its time.
 */
const RANDOM_BYTES = 16;

/** Random bytes for 256 ids; each byte is used once. */
const POOL_BYTES = 256 * RANDOM_BYTES;

/**
 * Creates a generator of ids: UUID v7 in lower case. Each sorts after the
 * previous one, within a millisecond and when the clock is set back too.
 *
 * @param now milliseconds since 1970 UTC
 */
export function idMaker(now: () => number): () => string {
  const pool = new Uint8Array(POOL_BYTES);
  let used = POOL_BYTES;
  let msecs = Number.NEGATIVE_INFINITY;
  let seq = 0;
  return () => {
    if (used === POOL_BYTES) {
      randomFillSync(pool);
      used = 0;
    }
    const random = pool.subarray(used, used + RANDOM_BYTES);
    used += RANDOM_BYTES;
    const at = now();
    if (at > msecs) {
      msecs = at;
      // 31 of 32 bits, so that the counter can grow.
      seq = new DataView(random.buffer, random.byteOffset).getUint32(0) >>> 1;
    } else {
      seq = (seq + 1) >>> 0;
      if (seq === 0) msecs += 1;
    }
    return v7({ random, msecs, seq });
  };
}
