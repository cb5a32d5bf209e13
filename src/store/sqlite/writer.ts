import { performance } from "node:perf_hooks";
import type { Kysely } from "kysely";
import { Group } from "../group.ts";
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
import type { IndexedText, TextIndex } from "./search/text-index.ts";
import type { Snapshot } from "./snapshot.ts";
import { hasFreeSpace, isEngineFailure, storageProblem } from "./storage-problem.ts";
import { nextTurn, restAfter, WriteTurns } from "./write-turns.ts";

/**
 * A group takes no more writes when it has worked this long, so that reads on
 * this thread are not held up; then it writes their records, which takes about a
 * tenth of that. With 32 connections creating projects, groups of 4 ms took a
 * tenth more processor time a write, and groups of 16 ms a twentieth less.
 */
export const GROUP_MS = 8;

/**
 * Writes that are committed each for itself after a group whose end could not be
 * written, such as the records of an organization whose chain was tampered with:
 * so that others do not fail with it again and again.
 */
const ALONE_AFTER_FAILURE = 100;

/**
 * Turns of the event loop between two groups, so that what came while the disk was
 * forced is answered: in one a new connection is taken, in the next its request is read.
 */
const TURNS_BETWEEN = 3;

/** Writes waiting past this number are refused: the disk is slower than the callers. */
const QUEUE_LIMIT = 10_000;

export interface WriterOptions extends WriteSettings {
  /** Folder of the database. */
  readonly dataDir: string;
  /** Of reads, which see a commit as soon as anybody is told of it. */
  readonly snapshot: Snapshot;
  readonly checkpoints: Checkpoints;
  readonly textIndex: TextIndex;
  /** False gives each write a commit of its own; bench/ compares the two. */
  readonly grouping: boolean;
  readonly groupMs: number;
  readonly featureLevel: number;
}

interface Job {
  readonly run: (tx: Kysely<Schema>) => Promise<unknown>;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * The one writer. Writes that wait at the same time share a commit, each in a
 * savepoint of its own, so that one failing takes nothing with it; a commit
 * forces the disk once however many writes it holds. Only what is left for the
 * end of a commit, such as its records, fails with all of it.
 */
export class Writer {
  readonly #connection: Connection;
  readonly #options: WriterOptions;
  #queue: Job[] = [];
  #running: Promise<void> | undefined;
  #closed = false;
  #problem: string | undefined;
  /** Number of the next writes that get a commit of their own. */
  #alone = 0;
  readonly #listeners = new Listeners();
  readonly #turns: WriteTurns;
  /** Of the commit that is being made, or of the next one. */
  #group: Group;
  /** The texts that this commit adds to the index. */
  #texts: IndexedText[] = [];

  constructor(connection: Connection, options: WriterOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#group = new Group(connection.db);
    this.#turns = new WriteTurns(connection.raw);
    connection.afterQuery = this.#turns.pauseWhenDue;
  }

  write<T>(
    actor: Actor,
    operation: string,
    fn: (tx: WriteTransaction) => Promise<T>,
    { locks = "installation", signal }: WriteOptions,
  ): Promise<T> {
    return this.enqueue(async (db) => {
      const [group, texts] = [this.#group, this.#texts];
      // There is one writer, and so nothing to wait for; what a write may change is the same on every engine.
      const held = new HeldLocks(typeof locks === "function" ? await locks(db) : locks);
      const { result, topics } = await runWrite(actor, operation, fn, this.#options, {
        db,
        group,
        featureLevel: this.#options.featureLevel,
        locks: held,
        deleteOwnedRows: (organizationId, onTable) => deleteOwnedRows(db, organizationId, onTable),
        indexText: (tx, scope, text) =>
          indexSearchText(tx, (row, each) => group.add(texts, { row, text: each }), scope, text),
        attempt: (part, undo) => this.#attemptPart(part, undo),
        pause: this.#turns.pauseWhenDue,
      });
      this.#listeners.expect(topics);
      return result;
    }, signal);
  }

  /** Runs `run` in a savepoint of the next commit. */
  enqueue<T>(run: (db: Kysely<Schema>) => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#closed) return Promise.reject(new StoreUnavailable("the store is closed"));
    if (this.#queue.length >= QUEUE_LIMIT)
      return Promise.reject(new StoreUnavailable("too many writes are waiting"));
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ run, signal, resolve: resolve as Job["resolve"], reject });
      // Not at once: requests of the same turn of the event loop join the group.
      this.#running ??= new Promise((done) => setImmediate(() => void this.#drain().then(done)));
    });
  }

  /** Calls `listener` after each commit; returns what ends it. */
  onCommit(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  /** Calls `listener` after each commit that changes a resource; returns what ends it. */
  onChange(id: string, listener: () => void): () => void {
    return this.#listeners.addOf(id, listener);
  }

  /** Returns why a commit was not taken, until a {@link probe} finds that the next would be; undefined for what passes. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Tries a change while there is a problem, takes it back at once, and forgets the problem when both are taken. */
  async probe(): Promise<void> {
    if (this.#problem === undefined || !hasFreeSpace(this.#options.dataDir)) return;
    // The engine writes nothing, and forces nothing, for a row that gets the values that it has.
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

  /** Waits for the writes under way and refuses later ones. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0) {
      const commitMs = await this.#commitGroup();
      await this.#options.checkpoints.keepShort();
      // Awaited, as this thread would stand still at `begin` until the merge has committed.
      await this.#options.textIndex.merge();
      for (let turn = 0; turn < TURNS_BETWEEN; turn++) await nextTurn();
      await restAfter(commitMs);
    }
    this.#running = undefined;
  }

  /** @returns how long the engine took to commit, in milliseconds; 0 when it did not */
  async #commitGroup(): Promise<number> {
    const settled: (() => void)[] = [];
    const members: Job[] = [];
    const waiting = this.#queue.length;
    let beganAt = 0;
    try {
      await beginWrite(this.#connection.raw);
      this.#turns.open();
      await this.#attemptGroup(members, settled);
      this.#turns.begin();
      await this.#group.writeOut(this.#options.audit);
      await this.#options.textIndex.add(this.#connection.db, this.#texts);
      this.#turns.close();
      this.#options.snapshot.renew();
      beganAt = performance.now();
      this.#connection.raw.exec("commit");
    } catch (error) {
      if (this.#connection.raw.inTransaction) this.#connection.raw.exec("rollback");
      const failed = this.#failed(error);
      // Nothing has begun when `begin` itself fails: all that have waited for it get the news.
      const told = members.length > 0 ? members : this.#queue.splice(0, waiting);
      for (const job of told) job.reject(failed);
      if (members.length > 1) this.#alone = ALONE_AFTER_FAILURE;
      return 0;
    } finally {
      this.#turns.close();
      this.#group = new Group(this.#connection.db);
      this.#texts = [];
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

  async #attemptGroup(members: Job[], settled: (() => void)[]): Promise<void> {
    const started = performance.now();
    do {
      const job = this.#queue.shift();
      if (!job) break;
      members.push(job);
      settled.push(await this.#attempt(job));
      if (this.#alone > 0) {
        this.#alone -= 1;
        break;
      }
    } while (this.#options.grouping && performance.now() - started < this.#options.groupMs);
  }

  async #attemptPart<T>(part: () => Promise<T>, undo: () => void): Promise<T> {
    const { raw } = this.#connection;
    raw.exec("savepoint part");
    try {
      const value = await part();
      raw.exec("release part");
      return value;
    } catch (error) {
      // As in #attempt. Whoever caught it and went on would write past any transaction.
      if (!raw.inTransaction) throw this.#failed(error);
      raw.exec("rollback to part");
      raw.exec("release part");
      undo();
      throw isEngineFailure(error) ? this.#failed(error) : error;
    }
  }

  async #attempt(job: Job): Promise<() => void> {
    const { raw, db } = this.#connection;
    if (job.signal?.aborted) {
      const { reason } = job.signal;
      return () => job.reject(reason);
    }
    raw.exec("savepoint attempt");
    const mark = this.#group.mark();
    this.#turns.begin();
    try {
      const value = await job.run(db);
      this.#turns.requireNoOtherWaits();
      raw.exec("release attempt");
      return () => job.resolve(value);
    } catch (error) {
      // The engine has given up the whole transaction, as it does when the disk is full: nothing is left to roll back.
      if (!raw.inTransaction) throw error;
      raw.exec("rollback to attempt");
      raw.exec("release attempt");
      this.#group.backTo(mark);
      return () => job.reject(storageProblem(error) === undefined ? error : this.#failed(error));
    }
  }
}
