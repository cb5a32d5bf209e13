/** A piece of a step's output. */
export interface LogChunk {
  /** The position in the step's output, in bytes. */
  readonly offset: number;
  /** At most `pieceBytes`; it may begin or end within a character. */
  readonly data: Uint8Array;
}

export interface StepLogLimits {
  /** Maximum time that a byte is delayed so that it is sent with others, in milliseconds; 250 when absent. */
  readonly intervalMs?: number;
  /**
   * Number of buffered bytes that are sent without delay, and the maximum size of a piece; 32,768 when absent. The contract
   * allows 65,536.
   */
  readonly pieceBytes?: number;
}

/** Number of pieces that may be buffered before the writer has to wait. */
const MAX_WAITING_PIECES = 4;

/** Collects the output of a step and sends it in pieces, in order, one at a time. */
export class StepLog {
  readonly #deliver: (piece: LogChunk) => Promise<void>;
  readonly #intervalMs: number;
  readonly #pieceBytes: number;
  #waiting: Buffer = Buffer.alloc(0);
  #offset = 0;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  /** Resolves when a piece is delivered or sending has failed. */
  #progressed = Promise.withResolvers<void>();
  #failure: { readonly cause: unknown } | undefined;

  /** @param deliver sends a piece. The next piece follows when its promise resolves; none follows when it rejects. */
  constructor(
    deliver: (piece: LogChunk) => Promise<void>,
    { intervalMs = 250, pieceBytes = 32 * 1_024 }: StepLogLimits = {},
  ) {
    this.#deliver = deliver;
    this.#intervalMs = intervalMs;
    this.#pieceBytes = pieceBytes;
  }

  /**
   * Appends bytes; resolves when the buffer has room for more.
   *
   * @throws the error that `deliver` rejected with, now or before
   */
  async write(bytes: Uint8Array): Promise<void> {
    this.#throwFailure();
    this.#waiting = Buffer.concat([this.#waiting, bytes]);
    if (this.#waiting.length >= this.#pieceBytes) this.#send();
    else this.#timer ??= setTimeout(() => this.#send(), this.#intervalMs);
    while (this.#waiting.length > MAX_WAITING_PIECES * this.#pieceBytes) await this.#progressed.promise;
    this.#throwFailure();
  }

  /**
   * Sends all buffered bytes; resolves when everything is delivered.
   *
   * @throws the error that `deliver` rejected with, now or before
   */
  async close(): Promise<void> {
    while (this.#sending || this.#waiting.length > 0) {
      this.#send();
      await this.#sending;
    }
    clearTimeout(this.#timer);
    this.#throwFailure();
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#waiting.length > 0) this.#sending ??= this.#sendWaiting();
  }

  /**
   * Sends the buffered bytes. Bytes that arrive while a piece is in flight are delayed again, unless they fill a piece.
   */
  async #sendWaiting(): Promise<void> {
    try {
      let dueBytes = this.#waiting.length;
      while (dueBytes > 0 || this.#waiting.length >= this.#pieceBytes) {
        const data = this.#waiting.subarray(0, this.#pieceBytes);
        await this.#deliver({ offset: this.#offset, data });
        this.#waiting = this.#waiting.subarray(data.length);
        this.#offset += data.length;
        dueBytes -= data.length;
        this.#progressed.resolve();
        this.#progressed = Promise.withResolvers();
      }
    } catch (cause) {
      this.#failure = { cause };
      this.#waiting = Buffer.alloc(0);
      this.#progressed.resolve();
    }
    this.#sending = undefined;
    if (this.#waiting.length > 0) this.#timer ??= setTimeout(() => this.#send(), this.#intervalMs);
  }

  #throwFailure(): void {
    if (this.#failure) throw this.#failure.cause;
  }
}
