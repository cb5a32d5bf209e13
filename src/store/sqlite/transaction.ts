import type { Kysely } from "kysely";
import { Group } from "../group.ts";
import type { Schema } from "../schema.ts";
import { StoreUnavailable } from "../store.ts";
import type { Connection } from "./connection.ts";
import type { IndexedText } from "./search/text-index.ts";
import { isEngineFailure, storageProblem } from "./storage-problem.ts";
import type { WriteTurns } from "./write-turns.ts";

/** A write that waits for its turn. */
export interface Job {
  readonly run: (tx: Kysely<Schema>) => Promise<unknown>;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * The error of a transaction that needs savepoints to continue: a write, or a part of one, failed after it had changed
 * something, and the other changes must be kept.
 */
export class NeedsSavepoints extends StoreUnavailable {
  constructor(cause: unknown) {
    super("the transaction begins again, with savepoints", { cause });
  }
}

/** The parts of the writer that a transaction needs. */
export interface TransactionOptions {
  readonly turns: WriteTurns;
  /** Converts an error of the engine to the one that a caller gets. */
  readonly fail: (cause: unknown) => StoreUnavailable;
  readonly hasSavepoints: boolean;
}

/**
 * One transaction of the engine, shared by several writes. Writes seldom fail after a change, so it creates no
 * savepoints, for each of which the engine copies every changed page. When one does fail, the transaction ends, and
 * its writes start over in one with a savepoint each.
 */
export class Transaction {
  readonly group: Group;
  /** The texts that the transaction adds to the index. */
  readonly texts: IndexedText[] = [];
  readonly #connection: Connection;
  readonly #options: TransactionOptions;
  /** Set when the transaction cannot continue, even if the write that received this error ignores it. */
  #needsSavepoints: NeedsSavepoints | undefined;

  constructor(connection: Connection, options: TransactionOptions) {
    this.#connection = connection;
    this.#options = options;
    this.group = new Group(connection.db);
  }

  /**
   * Runs one write.
   * @returns the function that reports to its caller, once all is committed
   * @throws NeedsSavepoints; the engine's error when it has rolled back the transaction
   */
  async attempt(job: Job): Promise<() => void> {
    const { raw, db } = this.#connection;
    const { turns, fail, hasSavepoints } = this.#options;
    if (job.signal?.aborted) {
      const { reason } = job.signal;
      return () => job.reject(reason);
    }
    if (hasSavepoints) raw.exec("savepoint attempt");
    const mark = this.group.mark();
    const changes = this.#connection.changes();
    turns.begin();
    try {
      const value = await job.run(db);
      turns.requireNoOtherWaits();
      if (this.#needsSavepoints) throw this.#needsSavepoints;
      if (hasSavepoints) raw.exec("release attempt");
      return () => job.resolve(value);
    } catch (error) {
      // The engine has rolled back the whole transaction, as it does when the disk is full: nothing is left to roll
      // back.
      if (!raw.inTransaction) throw error;
      if (hasSavepoints) backTo(raw, "attempt");
      else if (this.#needsSavepoints || this.#connection.changes() !== changes) throw this.#restart(error);
      this.group.backTo(mark);
      return () => job.reject(storageProblem(error) === undefined ? error : fail(error));
    }
  }

  /** Runs a part of a write that may fail. @param undo removes the records that the part has added */
  async attemptPart<T>(part: () => Promise<T>, undo: () => void): Promise<T> {
    const { raw } = this.#connection;
    const { fail, hasSavepoints } = this.#options;
    if (hasSavepoints) raw.exec("savepoint part");
    const changes = this.#connection.changes();
    try {
      const value = await part();
      if (hasSavepoints) raw.exec("release part");
      return value;
    } catch (error) {
      // As in attempt. A caller that caught the error and continued would write outside of any transaction.
      if (!raw.inTransaction) throw fail(error);
      if (hasSavepoints) backTo(raw, "part");
      else if (this.#needsSavepoints || this.#connection.changes() !== changes) throw this.#restart(error);
      undo();
      throw isEngineFailure(error) ? fail(error) : error;
    }
  }

  #restart(cause: unknown): NeedsSavepoints {
    this.#needsSavepoints ??= new NeedsSavepoints(cause);
    return this.#needsSavepoints;
  }
}

/** Rolls back to a savepoint, and removes it. */
function backTo(raw: Connection["raw"], savepoint: string): void {
  raw.exec(`rollback to ${savepoint}`);
  raw.exec(`release ${savepoint}`);
}
