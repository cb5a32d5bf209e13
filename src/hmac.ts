import { createHash, hash } from "node:crypto";

/** What SHA-256 takes at once (FIPS 180-4); a key is filled up to it with zeros (RFC 2104). */
const BLOCK_BYTES = 64;
const HASH_BYTES = 32;

/** Values up to this length, nearly all of them, are put behind the key's block; 3 bytes for a character of text. */
const ROOM_BYTES = 4_096;

/**
 * Makes HMAC-SHA256 (RFC 2104) with one key, as the two hashes that it is.
 * Node's own makes a native object for each value, with which a GetProject takes
 * a tenth more processor time. The key's block never gets into Node's pool of
 * buffers, whose memory is handed out again, nor does a value as short as a token.
 */
export class Hmac {
  /** What the inner hash is made over: the key's block, and behind it each value in turn. */
  readonly #inner = Buffer.alloc(BLOCK_BYTES + ROOM_BYTES);
  /** The same for the outer hash, which is made over the inner one. */
  readonly #outer = Buffer.alloc(BLOCK_BYTES + HASH_BYTES);

  /** @throws for a key of more than 64 bytes, which would have to be hashed first */
  constructor(key: Uint8Array) {
    if (key.length > BLOCK_BYTES) throw new Error(`a key of HMAC has at most ${BLOCK_BYTES} bytes`);
    const block = new Uint8Array(BLOCK_BYTES);
    block.set(key);
    this.#inner.set(block.map((byte) => byte ^ 0x36));
    this.#outer.set(block.map((byte) => byte ^ 0x5c));
  }

  /** @param value text is taken as UTF-8 */
  mac(value: string | Uint8Array): Buffer {
    this.#outer.set(this.#innerHash(value), BLOCK_BYTES);
    return hash("sha256", this.#outer, "buffer");
  }

  #innerHash(value: string | Uint8Array): Buffer {
    const longest = typeof value === "string" ? 3 * value.length : value.length;
    if (longest > ROOM_BYTES) {
      const block = this.#inner.subarray(0, BLOCK_BYTES);
      return createHash("sha256").update(block).update(value).digest();
    }
    const end = BLOCK_BYTES + this.#put(value);
    const made = hash("sha256", this.#inner.subarray(0, end), "buffer");
    this.#inner.fill(0, BLOCK_BYTES, end);
    return made;
  }

  /** Puts the value behind the key's block; its length in bytes. */
  #put(value: string | Uint8Array): number {
    if (typeof value === "string") return this.#inner.write(value, BLOCK_BYTES);
    this.#inner.set(value, BLOCK_BYTES);
    return value.length;
  }
}
