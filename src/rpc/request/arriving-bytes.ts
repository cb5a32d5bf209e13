import type { ConnectError } from "@connectrpc/connect";
import { releaseBuffer } from "./free-chunk.ts";

/** Counts the bytes of one request body that are in memory. */
export interface BodyAccount {
  /**
   * Begins to accept that the body is refused for the sake of others, until
   * `arrived`.
   *
   * @param refused called at most once; the body is not counted from then on
   */
  arriving(refused?: (error: ConnectError) => void): void;
  /**
   * Sets the number of bytes that the body holds from now on.
   *
   * @throws ConnectError BODY_BUDGET_EXCEEDED, also when it was refused before
   */
  set(bytes: number): void;
  /**
   * Protects the body, which has arrived and is unpacked.
   *
   * @throws ConnectError BODY_BUDGET_EXCEEDED, when it was refused before
   */
  arrived(): void;
  release(): void;
}

/** The first capacity, in bytes: as much as a connection reads at once. */
const FIRST_BYTES = 64 * 1024;

/** The factor by which the capacity grows; at four, a third of the bytes are copied a second time. */
const GROWTH = 4;

/**
 * Collects pieces that have a known length together, in memory of at most four
 * times what has arrived: the promise of a length allocates nothing.
 */
export class ArrivingBytes {
  readonly #lengthBytes: number;
  #bytes: Uint8Array<ArrayBuffer>;
  #filled = 0;

  constructor(lengthBytes: number) {
    this.#lengthBytes = lengthBytes;
    this.#bytes = new Uint8Array(Math.min(lengthBytes, FIRST_BYTES));
  }

  get missing(): number {
    return this.#lengthBytes - this.#filled;
  }

  /** The allocated memory, in bytes. */
  get capacity(): number {
    return this.#bytes.length;
  }

  /** Copies a piece that is not longer than what is missing. */
  add(piece: Uint8Array): void {
    const filled = this.#filled + piece.length;
    if (filled > this.#bytes.length) this.#grow(filled);
    this.#bytes.set(piece, this.#filled);
    this.#filled = filled;
  }

  /** Returns the bytes that were added; whole memory, unless some are missing. */
  take(): Uint8Array<ArrayBuffer> {
    return this.missing === 0 ? this.#bytes : this.#bytes.slice(0, this.#filled);
  }

  /** Releases the memory at once. */
  free(): void {
    releaseBuffer(this.#bytes);
    this.#bytes = new Uint8Array();
  }

  #grow(least: number): void {
    const former = this.#bytes;
    // The system allocates memory as bytes are written to it.
    this.#bytes = new Uint8Array(Math.min(this.#lengthBytes, Math.max(least, GROWTH * former.length)));
    this.#bytes.set(former.subarray(0, this.#filled));
    releaseBuffer(former);
  }
}
