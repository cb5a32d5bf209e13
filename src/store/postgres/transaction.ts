import { randomBytes, randomUUID } from "node:crypto";
import { performance } from "node:perf_hooks";
import type { Kysely } from "kysely";
import type pg from "pg";
import { deadlinePassed } from "../../domain/error.ts";
import type { StoreMeasures } from "../../domain/measures.ts";
import { Group } from "../group.ts";
import { type AuditSeal, readHeadAhead } from "../record/record.ts";
import type { Schema } from "../schema.ts";
import { StoreUnavailable } from "../store.ts";
import { builderOfClient, guardRows } from "./connection.ts";
import type { Lane, WaitingWrite } from "./lane.ts";
import { lockForWrite } from "./locks.ts";
import { LOCK_WAIT_MS, limitFor } from "./session-settings.ts";
import { isBroken, isEngineFailure, isRetryable, isTimeout } from "./storage-problem.ts";
import type { WriteClient } from "./write-client.ts";

/** Converts an error of the engine to the one that a caller gets. */
type Fail = (cause: unknown) => StoreUnavailable;

/**
 * The error of a transaction that needs savepoints to continue: a write, or a part of one, failed after it had changed
 * something, and the other changes must be kept.
 */
export class NeedsSavepoints extends StoreUnavailable {
  constructor(cause: unknown) {
    super("the transaction begins again, with savepoints", { cause });
  }
}

/** The error of a transaction whose only write has failed. */
export class WriteFailed extends Error {
  /** Reports the failure to the caller. */
  readonly settle: () => void;

  constructor(settle: () => void) {
    super("the only write of the transaction failed");
    this.settle = settle;
  }
}

/**
 * One transaction of the engine, shared by several writes. Writes seldom fail after a change, so it creates no
 * savepoints. When one does, the transaction ends, and the writes start over in one with a savepoint each.
 */
export class Transaction {
  readonly client: WriteClient;
  readonly db: Kysely<Schema>;
  readonly group: Group;
  /** The topics whose listeners are called after the commit. */
  readonly topics = new Set<string>();
  readonly #fail: Fail;
  readonly #defersSending: () => boolean;
  readonly #hasSavepoints: boolean;
  #attempts = 0;
  /** True when the current write has had a part that may fail. */
  #hasParts = false;
  /** Set when the transaction cannot continue, even if the write that received this error ignores it. */
  #needsSavepoints: NeedsSavepoints | undefined;
  /** The limits of the next statement, in milliseconds; 0 for none. Initially those of the connection. */
  #lockMs = LOCK_WAIT_MS;
  #statementMs = 0;
  #featureLevel = 0;
  readonly #startedAt = performance.now();
  /** The time that it and its predecessors waited for the locks; undefined for bookkeeping, which takes no locks. */
  #lockWaitMs: number | undefined;

  /** @param defersSending whether a write's changes are sent with the next reads or records, not on their own */
  constructor(client: WriteClient, fail: Fail, defersSending: () => boolean, hasSavepoints: boolean) {
    this.client = client;
    this.db = builderOfClient(client);
    this.group = new Group(this.db);
    this.#fail = fail;
    this.#defersSending = defersSending;
    this.#hasSavepoints = hasSavepoints;
  }

  /**
   * Begins the transaction, and takes the locks of a lane before anything is read. Bookkeeping takes no locks; its
   * transaction only prevents the feature level from being raised until it has ended.
   * @returns the feature level of the data
   * @throws the engine's error, also when the locks were not available in the time that the lane waits
   */
  async begin(lane: Lane): Promise<number> {
    const { locks } = lane;
    this.client.sendAhead({ name: "begin", text: "begin isolation level read committed" });
    this.#featureLevel = await lockForWrite(this.client, locks ?? [], lane.beginWait(performance.now()));
    const waitedMs = lane.endWait(performance.now());
    if (locks) this.#lockWaitMs = waitedMs;
    // Sent with the first read of the first write; a missing organization fails the change that names it.
    if (typeof locks === "object" && locks.length === 1 && locks[0])
      readHeadAhead(this.group, locks[0]).catch(() => {});
    return this.#featureLevel;
  }

  /** Counts the transaction, which is committed, with its writes. */
  measure(measures: StoreMeasures, writes: number): void {
    if (this.#lockWaitMs !== undefined) measures.lockWaitSeconds.record(this.#lockWaitMs / 1000);
    measures.commit(writes, performance.now() - this.#startedAt, this.group.outcomes);
  }

  /** The feature level of the data. */
  get featureLevel(): number {
    return this.#featureLevel;
  }

  /**
   * Runs one write.
   * @returns the function that reports to its caller, once all is committed
   * @throws the engine's error when the transaction is lost or must start over; NeedsSavepoints; WriteFailed
   */
  async attempt(write: WaitingWrite): Promise<() => void> {
    const { client, group } = this;
    const mark = group.mark();
    const { deadline } = write;
    const leftMs = deadline === undefined ? 0 : Math.max(1, deadline - performance.now());
    this.#limit(leftMs || LOCK_WAIT_MS, leftMs);
    if (this.#hasSavepoints) client.sendAhead({ text: "savepoint attempt" });
    this.#attempts += 1;
    this.#hasParts = false;
    const { changes } = client;
    guardRows(client, write.held);
    try {
      const value = await write.run(this);
      const refusal = this.#hasSavepoints ? client.failure : client.refusal;
      if (refusal ?? this.#needsSavepoints) throw refusal ?? this.#needsSavepoints;
      if (this.#hasSavepoints) await client.query("release savepoint attempt");
      return () => write.resolve(value);
    } catch (error) {
      if (isBroken(error) || isRetryable(error)) throw error;
      const settle = () => write.reject(this.#errorOf(error, write));
      if (this.#hasSavepoints) {
        await backTo(client, "attempt");
      } else if (this.#needsSavepoints || client.refusal || client.changes > changes) {
        await client.answered();
        // A part may have counted as done before the engine rejected its change, which then fails the write.
        const isItsOwn = !this.#needsSavepoints && !(this.#hasParts && client.refusal);
        throw this.#attempts === 1 && isItsOwn ? new WriteFailed(settle) : this.#restart(error);
      }
      group.backTo(mark);
      return settle;
    } finally {
      guardRows(client, undefined);
    }
  }

  /**
   * Sends the changes of a write before its records are built, so that the engine works meanwhile. With `defersSending`
   * they are sent with the next statements instead: fewer batches are better when other work keeps the engine busy.
   */
  sendChanges(): void {
    if (!this.#defersSending()) this.client.sendNow();
  }

  /** Runs a part of a write that may fail. @param undo removes the records that the part has added */
  async attemptPart<T>(part: () => Promise<T>, undo: () => void): Promise<T> {
    const { client } = this;
    this.#hasParts = true;
    if (this.#hasSavepoints) client.sendAhead({ text: "savepoint part" });
    const { changes } = client;
    try {
      const value = await part();
      if (client.failure) throw client.failure;
      if (this.#hasSavepoints) await client.query("release savepoint part");
      return value;
    } catch (error) {
      // Both errors end the whole transaction. A retryable one reaches the writer, which starts it over; a broken
      // connection is reported as unavailable.
      if (isRetryable(error)) throw error;
      if (isBroken(error)) throw this.#fail(error);
      if (this.#hasSavepoints) await backTo(client, "part");
      else if (this.#needsSavepoints || client.refusal || client.changes > changes)
        throw this.#restart(error);
      undo();
      throw isEngineFailure(error) ? this.#fail(error) : error;
    }
  }

  #restart(cause: unknown): NeedsSavepoints {
    this.#needsSavepoints ??= new NeedsSavepoints(cause);
    return this.#needsSavepoints;
  }

  /**
   * Writes the records of all writes, and commits.
   * @throws the engine's error (when the connection broke, it is unknown whether the commit was made); NeedsSavepoints
   */
  async commit(seal: AuditSeal): Promise<void> {
    try {
      await this.#commit(seal);
    } catch (error) {
      const { refusal } = this.client;
      if (this.#hasSavepoints || !refusal || isBroken(error) || isRetryable(error)) throw error;
      // The error may concern only the last write.
      throw this.#restart(error);
    }
  }

  async #commit(seal: AuditSeal): Promise<void> {
    // The limits are those of the last caller; what follows is for all callers.
    this.#limit(LOCK_WAIT_MS, 0);
    await this.group.writeOut(seal);
    if (this.client.failure) throw this.client.failure;
    const { command } = await this.client.query({ name: "commit", text: "commit" });
    // The engine treats the commit of a failed transaction as a rollback.
    if (command !== "COMMIT") throw this.client.failure ?? new Error(`the transaction ended with ${command}`);
  }

  /** Sets the limits of a statement, in milliseconds, if they have changed. */
  #limit(lockMs: number, statementMs: number): void {
    const lock = limitFor(lockMs, MAX_MS);
    const statement = statementMs === 0 ? 0 : limitFor(statementMs, MAX_MS);
    if (lock === this.#lockMs && statement === this.#statementMs) return;
    [this.#lockMs, this.#statementMs] = [lock, statement];
    this.client.sendAhead({ name: "limits", text: SET_LIMITS, values: [lock, statement] });
  }

  #errorOf(error: unknown, { deadline }: WaitingWrite): unknown {
    if (!isEngineFailure(error)) return error;
    const isLate = deadline !== undefined && deadline <= performance.now() + CLOCK_MS;
    return isTimeout(error) && isLate ? deadlinePassed() : this.#fail(error);
  }
}

/** The longest limit that the engine accepts. */
const MAX_MS = 2 ** 31 - 1;

/** Sets both limits for the transaction. */
const SET_LIMITS = "select set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true)";

/** Rolls back to a savepoint, and removes it. */
async function backTo(client: pg.ClientBase, savepoint: string): Promise<void> {
  await client.query(`rollback to savepoint ${savepoint}`);
  await client.query(`release savepoint ${savepoint}`);
}

/** Time in milliseconds by which the engine may detect an expired limit before this process does. */
const CLOCK_MS = 10;

/** Length in characters of a text that does not fit into free space of the tables: a full disk rejects it. */
const PROBE_LENGTH = 262_144;

/** Tries as much data as a large write, rolls it back, and rewrites a row unchanged. @throws the engine's error */
export async function tryChange(client: pg.ClientBase): Promise<void> {
  await client.query("savepoint probe");
  await tryInsert(client);
  await client.query("rollback to savepoint probe");
  await client.query("update installation set sequence = sequence");
}

/** Writes as much as a large write, for the caller to roll back. @throws the engine's error */
export async function tryInsert(client: pg.ClientBase): Promise<void> {
  // Random, since the engine compresses.
  const value = randomBytes(PROBE_LENGTH / 2).toString("hex");
  await client.query("insert into fact (name, value) values ($1, $2)", [randomUUID(), value]);
}

/** Ends a transaction that failed. @returns whether the connection can be used again */
export async function rollback(client: pg.ClientBase): Promise<boolean> {
  try {
    await client.query("rollback");
    return true;
  } catch {
    return false;
  }
}

/** Maximum pause before a transaction starts over, in milliseconds; multiplied by the number of attempts so far. */
const RETRY_MS = 10;

/** Waits briefly, so that two transactions in a deadlock do not meet again. */
export const pauseBefore = (attempt: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, attempt * RETRY_MS * Math.random()));
