import pg from "pg";
import { isBroken } from "./storage-problem.ts";

/** Number of statements that may be under way without anybody waiting for them. */
const MAX_AHEAD = 64;

/**
 * A connection that writes. Statements go to the engine as they are asked for, those of one moment in one piece, without
 * waiting for each other's answers; the engine carries them out in their order. What nobody needs an answer of is sent
 * ahead of the next statement, so that a write waits for the engine as often as it reads.
 */
export class WriteClient extends pg.Client {
  #ahead = 0;
  #failure: Error | undefined;
  #refusal: Error | undefined;
  #changes = 0;
  #isHeld = false;

  constructor(config?: pg.ClientConfig) {
    super({ ...config, pipeline: true });
  }

  /**
   * The error of a statement that was sent ahead, until it is rolled back. The engine refuses what follows it, and this
   * error is that of every statement after it.
   */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** The first error of the engine since the last rollback, of any statement: whatever shares the transaction is lost. */
  get refusal(): Error | undefined {
    return this.#refusal;
  }

  /** Number of statements so far that may have changed something. */
  get changes(): number {
    return this.#changes;
  }

  /** False while so many statements are under way that the next one is to be awaited. */
  get canSendAhead(): boolean {
    return this.#ahead < MAX_AHEAD;
  }

  /** Sends a statement whose answer nobody needs. @param onFailure called with its error */
  sendAhead(query: pg.QueryConfig, onFailure?: (error: Error) => void): void {
    this.#hold();
    this.#count(query.text);
    this.#ahead += 1;
    // Not the form that returns a promise: the driver calls this at once where it cannot send the values.
    const settle = (error?: Error | null) => {
      this.#ahead -= 1;
      if (!error) return;
      this.#failure ??= error;
      this.#refusal ??= error;
      onFailure?.(error);
    };
    super.query({ ...query }, settle);
  }

  /** Waits for the answers to all that was sent; never rejects, unless the connection breaks. */
  async answered(): Promise<void> {
    const answer: Promise<unknown> = this.query("select");
    await answer.catch((error) => {
      if (isBroken(error)) throw error;
    });
  }

  override query(...args: unknown[]): never {
    this.#hold();
    const text = textOf(args[0]);
    this.#count(text);
    const result = Reflect.apply(super.query, this, args) as Promise<unknown>;
    const answer = result.then(
      (value) => {
        if (text.startsWith("rollback")) this.#failure = this.#refusal = undefined;
        return value;
      },
      (error) => {
        this.#refusal ??= error;
        throw isBroken(error) ? error : (this.#failure ?? error);
      },
    );
    // Of the driver's many forms the one that returns a promise is used; `never` fits the declarations of all.
    return answer as never;
  }

  #count(text: string): void {
    if (!text.startsWith("select")) this.#changes += 1;
  }

  /** Keeps what is written from being sent until the turn of the event loop ends. */
  #hold(): void {
    if (this.#isHeld) return;
    this.#isHeld = true;
    const { stream } = this.connection;
    stream.cork();
    setImmediate(() => {
      this.#isHeld = false;
      stream.uncork();
    });
  }
}

const textOf = (query: unknown): string =>
  typeof query === "string" ? query : (query as pg.QueryConfig).text;
