import pg from "pg";
import { Batch, type BatchAnswer } from "./batch.ts";
import type { Column } from "./columns.ts";
import { isBroken } from "./storage-problem.ts";

/** Maximum number of statements in progress that nothing waits for. */
const MAX_AHEAD = 64;

/**
 * A write connection. Statements are sent without waiting for each other's answers; those of one turn of the event
 * loop form a batch, which the engine answers together. A statement whose answer nobody needs is sent with the next
 * one, so that a write waits for the engine only when it reads.
 */
export class WriteClient extends pg.Client {
  readonly #known = new Map<string, readonly Column[]>();
  /** The batch of the current turn of the event loop; undefined while it is empty. */
  #batch: Batch | undefined;
  #ahead = 0;
  #failure: Error | undefined;
  #refusal: Error | undefined;
  #changes = 0;

  constructor(config?: pg.ClientConfig) {
    super({ ...config, pipeline: true });
  }

  /**
   * The error of a statement that was sent without waiting, until it is rolled back. The engine rejects the statements
   * after it, and each of them gets this error.
   */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** The first error of the engine since the last rollback, of any statement: everything in the transaction is lost. */
  get refusal(): Error | undefined {
    return this.#refusal;
  }

  /** Number of statements so far that may have changed something. */
  get changes(): number {
    return this.#changes;
  }

  /** False while so many statements are in progress that the next one must be awaited. */
  get canSendAhead(): boolean {
    return this.#ahead < MAX_AHEAD;
  }

  /** Sends a statement whose answer nobody needs. @param onFailure called with its error */
  sendAhead(query: pg.QueryConfig, onFailure?: (error: Error) => void): void {
    this.#count(query.text);
    this.#ahead += 1;
    this.#add(
      query,
      () => {
        this.#ahead -= 1;
      },
      (error) => {
        this.#ahead -= 1;
        this.#failure ??= error;
        this.#refusal ??= error;
        onFailure?.(error);
      },
    );
  }

  /** Sends the statements of the current turn so far, so that the engine works meanwhile. */
  sendNow(): void {
    const batch = this.#batch;
    this.#batch = undefined;
    if (batch) super.query(batch);
  }

  /** Waits for the answers to everything that was sent; never rejects, unless the connection breaks. */
  async answered(): Promise<void> {
    const answer: Promise<unknown> = this.query("select");
    await answer.catch((error) => {
      if (isBroken(error)) throw error;
    });
  }

  override query(...args: unknown[]): never {
    const [first] = args;
    const query = typeof first === "string" ? { text: first, values: args[1] as unknown[] } : first;
    const { promise, resolve, reject } = Promise.withResolvers<BatchAnswer>();
    const { text } = query as pg.QueryConfig;
    this.#count(text);
    const isRollback = text.startsWith("rollback");
    // The engine skips the statements after a failed one, but only until the end of the batch.
    if (isRollback) this.sendNow();
    this.#add(
      query as pg.QueryConfig,
      (answer) => {
        if (isRollback) this.#failure = this.#refusal = undefined;
        resolve(answer);
      },
      (error) => {
        this.#refusal ??= error;
        reject(isBroken(error) ? error : (this.#failure ?? error));
      },
    );
    // Of the driver's many overloads only the one that returns a promise is used; `never` fits the declarations of all.
    return promise as never;
  }

  /** Adds a statement to the batch, which is sent when the turn of the event loop ends. */
  #add(query: pg.QueryConfig, resolve: (answer: BatchAnswer) => void, reject: (error: Error) => void): void {
    if (!this.#batch) {
      this.#batch = new Batch(this.#known);
      setImmediate(() => this.sendNow());
    }
    this.#batch.add(query, resolve, reject);
  }

  #count(text: string): void {
    if (!text.startsWith("select")) this.#changes += 1;
  }
}
