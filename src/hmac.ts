import { hash } from "node:crypto";

/** What SHA-256 takes at once (FIPS 180-4); a key is filled up to it with zeros (RFC 2104). */
const BLOCK_BYTES = 64;
const HASH_BYTES = 32;

/** Values up to this length, nearly all of them, take no memory of their own. */
const ROOM_BYTES = 4_096;

/**
 * Makes HMAC-SHA256 (RFC 2104) with one key, as the two hashes that it is.
 * Node's own makes an object of the engine for each value; a GetProject takes a
 * twelfth more with it. The bytes that come of the key are never in Node's pool
 * of buffers, whose memory is handed out again.
 */
export class Hmac {
  /** What the inner hash is made over: the key's block, and behind it each value in turn. */
  readonly #inner = Buffer.alloc(BLOCK_BYTES + ROOM_BYTES);
  /** The same for the outer hash, which is made over the inner one. */
  readonly #outer = Buffer.alloc(BLOCK_BYTES + HASH_BYTES);

  /** @throws for a key of more than 64 bytes, which would have to be hashed first */
  constructor(key: Uint8Array) {
    const block = new Uint8Array(BLOCK_BYTES);
    block.set(key);
    this.#inner.set(block.map((byte) => byte ^ 0x36));
    this.#outer.set(block.map((byte) => byte ^ 0x5c));
  }

  /** @param value text is taken as UTF-8 */
  mac(value: string | Uint8Array): Buffer {
    const bytes = typeof value === "string" ? Buffer.from(value) : value;
    const inner = this.#roomFor(bytes.length);
    inner.set(bytes, BLOCK_BYTES);
    this.#outer.set(hash("sha256", inner, "buffer"), BLOCK_BYTES);
    return hash("sha256", this.#outer, "buffer");
  }

  #roomFor(length: number): Buffer {
    if (length <= ROOM_BYTES) return this.#inner.subarray(0, BLOCK_BYTES + length);
    const larger = Buffer.allocUnsafeSlow(BLOCK_BYTES + length);
    larger.set(this.#inner.subarray(0, BLOCK_BYTES));
    return larger;
  }
}
