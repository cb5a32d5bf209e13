/** A piece of what a step wrote. */
export interface LogPiece {
  /** Its place in all that the step wrote, in bytes. */
  readonly offset: number;
  /** At most `pieceBytes`; it may begin or end within a character. */
  readonly data: Uint8Array;
}

export interface StepLogLimits {
  /** Longest wait of a byte for others to go with, in milliseconds; 250 when absent. */
  readonly intervalMs?: number;
  /** So much goes at once without a wait, and never more; 32,768 when absent. The contract takes 65,536. */
  readonly pieceBytes?: number;
}

/** So many pieces wait for their turn before whoever writes has to. */
const WAITING_PIECES = 4;

/** Collects what a step writes and sends it in pieces, in order, one at a time. */
export class StepLog {
  readonly #deliver: (piece: LogPiece) => Promise<void>;
  readonly #intervalMs: number;
  readonly #pieceBytes: number;
  #waiting: Buffer = Buffer.alloc(0);
  #offset = 0;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  /** Resolves when a piece is through, or none goes any more. */
  #lessWaits = Promise.withResolvers<void>();
  #failure: { readonly cause: unknown } | undefined;

  /** @param deliver sends a piece; the next one goes when its promise resolves, none when it rejects */
  constructor(
    deliver: (piece: LogPiece) => Promise<void>,
    { intervalMs = 250, pieceBytes = 32 * 1_024 }: StepLogLimits = {},
  ) {
    this.#deliver = deliver;
    this.#intervalMs = intervalMs;
    this.#pieceBytes = pieceBytes;
  }

  /**
   * Adds bytes behind those of earlier calls; resolves when there is room for more.
   *
   * @throws what `deliver` rejected with, now or before
   */
  async write(bytes: Uint8Array): Promise<void> {
    this.#throwFailure();
    this.#waiting = Buffer.concat([this.#waiting, bytes]);
    if (this.#waiting.length >= this.#pieceBytes) this.#send();
    else this.#timer ??= setTimeout(() => this.#send(), this.#intervalMs);
    while (this.#waiting.length > WAITING_PIECES * this.#pieceBytes) await this.#lessWaits.promise;
    this.#throwFailure();
  }

  /**
   * Sends the rest and resolves when all is delivered.
   *
   * @throws what `deliver` rejected with, now or before
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

  /** What comes while a piece is under way waits for others again, unless it fills a piece. */
  async #sendWaiting(): Promise<void> {
    try {
      let dueBytes = this.#waiting.length;
      while (dueBytes > 0 || this.#waiting.length >= this.#pieceBytes) {
        const data = this.#waiting.subarray(0, this.#pieceBytes);
        await this.#deliver({ offset: this.#offset, data });
        this.#waiting = this.#waiting.subarray(data.length);
        this.#offset += data.length;
        dueBytes -= data.length;
        this.#lessWaits.resolve();
        this.#lessWaits = Promise.withResolvers();
      }
    } catch (cause) {
      this.#failure = { cause };
      this.#waiting = Buffer.alloc(0);
      this.#lessWaits.resolve();
    }
    this.#sending = undefined;
    if (this.#waiting.length > 0) this.#timer ??= setTimeout(() => this.#send(), this.#intervalMs);
  }

  #throwFailure(): void {
    if (this.#failure) throw this.#failure.cause;
  }
}
