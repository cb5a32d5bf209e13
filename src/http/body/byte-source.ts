import { bodyTooLarge } from "../../rpc/error/error.ts";
import { ArrivingBytes, type BodyAccount } from "../../rpc/request/arriving-bytes.ts";
import { join } from "../../rpc/request/free-chunk.ts";

/**
 * Reads chunks of bytes as pieces of other lengths; each byte is copied once,
 * however small the chunks are.
 */
export class ByteSource {
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #free: (chunk: Uint8Array) => void;
  readonly #hold: BodyAccount;
  #refused: PromiseWithResolvers<never> | undefined;
  #rest: Uint8Array = new Uint8Array();

  /**
   * @param free called with each chunk that was copied
   * @param hold counts the bytes of messages as they arrive
   */
  constructor(chunks: AsyncIterable<Uint8Array>, free: (chunk: Uint8Array) => void, hold: BodyAccount) {
    this.#chunks = chunks[Symbol.asyncIterator]();
    this.#free = free;
    this.#hold = hold;
  }

  /** Begins a message. The body budget may refuse it until it has arrived. */
  begin(): void {
    const refused = Promise.withResolvers<never>();
    refused.promise.catch(() => {});
    this.#refused = refused;
    this.#hold.arriving(refused.reject);
  }

  /** Returns `length` bytes, fewer at the end; they are not counted. */
  async take(length: number): Promise<Uint8Array<ArrayBuffer>> {
    return this.#collect(new ArrivingBytes(length));
  }

  /**
   * Returns a message of `length` bytes, fewer at the end.
   *
   * @throws ConnectError BODY_BUDGET_EXCEEDED
   */
  async message(length: number): Promise<Uint8Array<ArrayBuffer>> {
    const taken = new ArrivingBytes(length);
    try {
      return await this.#collect(taken, this.#hold);
    } catch (error) {
      taken.free();
      throw error;
    }
  }

  async #collect(taken: ArrivingBytes, hold?: BodyAccount): Promise<Uint8Array<ArrayBuffer>> {
    let filled = 0;
    while (taken.missing > 0 && (await this.#more())) {
      const piece = this.#rest.subarray(0, taken.missing);
      filled += piece.length;
      hold?.set(filled);
      taken.add(piece);
      const used = this.#rest;
      this.#rest = used.subarray(piece.length);
      if (this.#rest.length === 0) this.#free(used);
    }
    return taken.take();
  }

  /**
   * Returns all remaining bytes, as one message.
   *
   * @throws ConnectError BODY_TOO_LARGE, at the first byte over the limit, and
   *   BODY_BUDGET_EXCEEDED
   */
  async rest(limitBytes: number): Promise<Uint8Array<ArrayBuffer>> {
    const pieces: Uint8Array[] = [];
    let length = 0;
    while (await this.#more()) {
      length += this.#rest.length;
      if (length > limitBytes) throw bodyTooLarge(limitBytes);
      this.#hold.set(length);
      pieces.push(this.#rest);
      this.#rest = new Uint8Array();
    }
    return join(pieces, length, this.#free);
  }

  /** Returns whether there is another byte. */
  async #more(): Promise<boolean> {
    while (this.#rest.length === 0) {
      const coming = this.#chunks.next();
      const next = await (this.#refused ? Promise.race([this.#refused.promise, coming]) : coming);
      if (next.done) return false;
      this.#rest = next.value;
    }
    return true;
  }

  /** Stops reading; the rest of the body may still arrive. */
  close(): void {
    this.#chunks.return?.()?.catch(() => {});
  }
}
