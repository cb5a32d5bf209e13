import { performance } from "node:perf_hooks";
import type { Kysely } from "kysely";
import { HeldLocks } from "../held-locks.ts";
import { Listeners } from "../listeners.ts";
import { runWrite, type WriteSettings } from "../run-write.ts";
import type { Schema } from "../schema.ts";
import { type Actor, StoreUnavailable, type WriteOptions, type WriteTransaction } from "../store.ts";
import type { Checkpoints } from "./checkpoint/checkpoints.ts";
import type { Connection } from "./connection.ts";
import { beginWrite } from "./connection.ts";
import { deleteOwnedRows } from "./owned-rows.ts";
import { indexSearchText } from "./search/project-texts.ts";
import type { TextIndex } from "./search/text-index.ts";
import type { Snapshot } from "./snapshot.ts";
import { hasFreeSpace, storageProblem } from "./storage-problem.ts";
import { type Job, NeedsSavepoints, Transaction } from "./transaction.ts";
import { nextTurn, restAfter, WriteTurns } from "./write-turns.ts";

/**
 * Time after which a group accepts no more writes, so that reads on this thread are not delayed; then it writes their
 * records, which takes about a tenth of that. With 32 connections creating projects, groups of 4 ms took a tenth more
 * processor time per write, and groups of 16 ms a twentieth less.
 */
export const GROUP_MS = 8;

/**
 * Number of writes that are committed one by one after a group whose end could not be written, for example because the
 * audit chain of an organization was tampered with. It keeps other writes from failing with that one again and again.
 */
const ALONE_AFTER_FAILURE = 100;

/**
 * Turns of the event loop between two groups, so that requests that arrived during the sync to disk are handled: in
 * one turn a new connection is accepted, in the next its request is read.
 */
const TURNS_BETWEEN = 3;

/** Maximum number of waiting writes; more are rejected, since the disk is slower than the callers. */
const QUEUE_LIMIT = 10_000;

export interface WriterOptions extends WriteSettings {
  /** Folder of the database. */
  readonly dataDir: string;
  /** The snapshot of reads, which see a commit as soon as anything reports it. */
  readonly snapshot: Snapshot;
  readonly checkpoints: Checkpoints;
  readonly textIndex: TextIndex;
  /** False gives each write its own commit; bench/ compares the two. */
  readonly grouping: boolean;
  readonly groupMs: number;
  readonly featureLevel: number;
}

/**
 * The only writer. Concurrent writes share a commit but fail independently; a commit syncs the disk once for any
 * number of writes. Only a failure at the end of a commit, such as of its records, fails all of them.
 */
export class Writer {
  readonly #connection: Connection;
  readonly #options: WriterOptions;
  #queue: Job[] = [];
  #running: Promise<void> | undefined;
  #closed = false;
  #problem: string | undefined;
  /** Number of upcoming writes that get their own commit. */
  #alone = 0;
  readonly #listeners = new Listeners();
  readonly #turns: WriteTurns;
  /** The commit in progress, or the next one. */
  #transaction: Transaction;

  constructor(connection: Connection, options: WriterOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#turns = new WriteTurns(connection.raw);
    this.#transaction = this.#newTransaction();
    connection.afterQuery = this.#turns.pauseWhenDue;
  }

  write<T>(
    actor: Actor,
    operation: string,
    fn: (tx: WriteTransaction) => Promise<T>,
    { locks = "installation", signal, trace }: WriteOptions,
  ): Promise<T> {
    return this.enqueue(async (db) => {
      const transaction = this.#transaction;
      const { group, texts } = transaction;
      // There is only one writer, so nothing to wait for; the check of what a write may change is the same on every
      // engine.
      const held = new HeldLocks(typeof locks === "function" ? await locks(db) : locks);
      const { result, topics } = await runWrite(actor, operation, fn, this.#options, {
        db,
        group,
        featureLevel: this.#options.featureLevel,
        trace,
        locks: held,
        deleteOwnedRows: (organizationId, onTable) => deleteOwnedRows(db, organizationId, onTable),
        indexText: (tx, scope, text) =>
          indexSearchText(tx, (row, each) => group.add(texts, { row, text: each }), scope, text),
        attempt: (part, undo) => transaction.attemptPart(part, undo),
        pause: this.#turns.pauseWhenDue,
      });
      this.#listeners.expect(topics);
      return result;
    }, signal);
  }

  /** Runs `run` as a write of the next commit. */
  enqueue<T>(run: (db: Kysely<Schema>) => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#closed) return Promise.reject(new StoreUnavailable("the store is closed"));
    if (this.#queue.length >= QUEUE_LIMIT)
      return Promise.reject(new StoreUnavailable("too many writes are waiting"));
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ run, signal, resolve: resolve as Job["resolve"], reject });
      // Delayed, so that requests of the same turn of the event loop join the group.
      this.#running ??= new Promise((done) => setImmediate(() => void this.#drain().then(done)));
    });
  }

  /** Calls `listener` after each commit. @returns the function that removes it */
  onCommit(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  /** Calls `listener` after each commit that changes a resource. @returns the function that removes it */
  onChange(id: string, listener: () => void): () => void {
    return this.#listeners.addOf(id, listener);
  }

  /** Returns why a commit was not accepted, until a {@link probe} succeeds; undefined for temporary problems. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Tries a change while there is a problem, rolls it back, and clears the problem when both succeed. */
  async probe(): Promise<void> {
    if (this.#problem === undefined || !hasFreeSpace(this.#options.dataDir)) return;
    // The engine writes and syncs nothing for a row whose values do not change.
    const move = (db: Kysely<Schema>, by: number) =>
      db
        .updateTable("installation")
        .set((eb) => ({ sequence: eb("sequence", "+", by) }))
        .execute();
    await this.enqueue(async (db) => {
      await move(db, 1);
      await move(db, -1);
    }).then(
      () => {
        this.#problem = undefined;
      },
      () => {},
    );
  }

  /** Calls every listener: another process has committed. */
  tellAll(): void {
    this.#listeners.callAll();
  }

  /** Waits for the writes in progress and rejects later ones. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0) {
      const commitMs = await this.#commitGroup();
      await this.#options.checkpoints.keepShort();
      // Awaited, since otherwise this thread would block at `begin` until the merge has committed.
      await this.#options.textIndex.merge();
      for (let turn = 0; turn < TURNS_BETWEEN; turn++) await nextTurn();
      await restAfter(commitMs);
    }
    this.#running = undefined;
  }

  /** @returns how long the engine took to commit, in milliseconds; 0 if it did not commit */
  async #commitGroup(): Promise<number> {
    const settled: (() => void)[] = [];
    const members: Job[] = [];
    const waiting = this.#queue.length;
    const startedAt = performance.now();
    let beganAt = 0;
    try {
      await this.#attemptGroup(members, settled);
      this.#turns.begin();
      await this.#transaction.group.writeOut(this.#options.audit);
      await this.#options.textIndex.add(this.#connection.db, this.#transaction.texts);
      this.#turns.close();
      this.#options.snapshot.renew();
      beganAt = performance.now();
      this.#connection.raw.exec("commit");
      const { outcomes } = this.#transaction.group;
      this.#options.measures.commit(members.length, performance.now() - startedAt, outcomes);
    } catch (error) {
      if (this.#connection.raw.inTransaction) this.#connection.raw.exec("rollback");
      const failed = this.#failed(error);
      // When `begin` itself fails, nothing has started: all writes that waited for it get the error.
      const failing = members.length > 0 ? members : this.#queue.splice(0, waiting);
      for (const job of failing) job.reject(failed);
      if (members.length > 1) this.#alone = ALONE_AFTER_FAILURE;
      return 0;
    } finally {
      this.#turns.close();
      this.#transaction = this.#newTransaction();
    }
    const tookMs = performance.now() - beganAt;
    for (const settle of settled) settle();
    this.#listeners.call();
    return tookMs;
  }

  #failed(cause: unknown): StoreUnavailable {
    if (cause instanceof StoreUnavailable) return cause;
    const problem = storageProblem(cause);
    this.#problem = problem ?? this.#problem;
    return new StoreUnavailable("the database did not take the write", { problem, cause });
  }

  #newTransaction(hasSavepoints = false): Transaction {
    const fail = (cause: unknown) => this.#failed(cause);
    return new Transaction(this.#connection, { turns: this.#turns, fail, hasSavepoints });
  }

  /** Begins a transaction and runs the writes of a group; again with savepoints if one fails after a change. */
  async #attemptGroup(members: Job[], settled: (() => void)[]): Promise<void> {
    try {
      await this.#attemptOnce(members, settled);
    } catch (error) {
      if (!(error instanceof NeedsSavepoints)) throw error;
      this.#turns.close();
      this.#connection.raw.exec("rollback");
      this.#queue.unshift(...members.splice(0));
      settled.splice(0);
      this.#transaction = this.#newTransaction(true);
      await this.#attemptOnce(members, settled);
    }
  }

  async #attemptOnce(members: Job[], settled: (() => void)[]): Promise<void> {
    await beginWrite(this.#connection.raw);
    this.#turns.open();
    const started = performance.now();
    do {
      const job = this.#queue.shift();
      if (!job) break;
      members.push(job);
      settled.push(await this.#transaction.attempt(job));
      if (this.#alone > 0) {
        this.#alone -= 1;
        break;
      }
    } while (this.#options.grouping && performance.now() - started < this.#options.groupMs);
  }
}
