import { performance } from "node:perf_hooks";
import type { Kysely } from "kysely";
import type pg from "pg";
import { deadlinePassed } from "../../domain/error.ts";
import { HeldLocks } from "../held-locks.ts";
import type { Listeners } from "../listeners.ts";
import { runWrite, type WriteSettings } from "../run-write.ts";
import type { Schema } from "../schema.ts";
import {
  type Actor,
  type BookkeepingOptions,
  type Reader,
  StoreUnavailable,
  type WriteOptions,
  type WriteTransaction,
} from "../store.ts";
import { LevelCheck } from "./feature-level.ts";
import { Lane, type WaitingWrite } from "./lane.ts";
import { isStillLeader, type LockSet, LocksGrew } from "./locks.ts";
import { deleteOwnedRows } from "./owned-rows.ts";
import type { Leader } from "./session.ts";
import { LOCK_WAIT_MS } from "./session-settings.ts";
import { isBroken, isRetryable, isTimeout, storageProblem } from "./storage-problem.ts";
import {
  NeedsSavepoints,
  pauseBefore,
  rollback,
  Transaction,
  tryChange,
  WriteFailed,
} from "./transaction.ts";
import { Turns } from "./turns.ts";
import type { WriteClient } from "./write-client.ts";

/** Time after which a group accepts no more writes, so that other servers get the lock. */
export const GROUP_MS = 8;

/** Maximum number of waiting writes; more are rejected, since the database is slower than the callers. */
const QUEUE_LIMIT = 10_000;

/** Maximum attempts at a group with deadlocks or failed serializations, and at a write that needs more locks. */
const MAX_ATTEMPTS = 5;

export interface WriterOptions extends WriteSettings {
  readonly pool: pg.Pool;
  /** Reads what is committed, without locks. */
  readonly reader: Reader;
  readonly groupMs: number;
  readonly listeners: Listeners;
  /** Called with the topics of a commit, after it. */
  readonly onCommitted: (topics: ReadonlySet<string>) => void;
  /** Returns when the caller of the current operation stops waiting, by performance.now(); undefined if never. */
  readonly deadline: () => number | undefined;
  /** Returns the lead of this process; undefined while another runs the jobs. */
  readonly leader: () => Leader | undefined;
}

/** A write with the locks of what it may change; bookkeeping has none, and may change only its own columns. */
type Run<T> = (transaction: Transaction, held: HeldLocks | undefined) => Promise<T>;

/**
 * Writes to PostgreSQL. Concurrent writes of one organization share a commit but fail independently; writes of
 * different organizations run in parallel. A transaction takes the locks of its organizations before it reads
 * anything, so it sees what a single writer would see.
 */
export class Writer {
  readonly #options: WriterOptions;
  readonly #lanes = new Map<string, Lane>();
  readonly #turns: Turns;
  #waiting = 0;
  #closed = false;
  #problem: string | undefined;
  readonly #level = new LevelCheck();

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#turns = new Turns(options.pool.options.max);
  }

  write<T>(
    actor: Actor,
    operation: string,
    fn: (tx: WriteTransaction) => Promise<T>,
    options: WriteOptions,
  ): Promise<T> {
    const run: Run<T> = async (transaction, held) => {
      const { db, group, featureLevel, topics } = transaction;
      if (!held) throw new Error("a write has no locks");
      const change = async (tx: WriteTransaction) => {
        const result = await fn(tx);
        transaction.sendChanges();
        return result;
      };
      const written = await runWrite(actor, operation, change, this.#options, {
        ...{ db, group, featureLevel },
        trace: options.trace,
        locks: held,
        deleteOwnedRows: (organizationId, onTable) => deleteOwnedRows(db, organizationId, onTable),
        // The index of texts belongs to the engine.
        indexText: async () => 0,
        attempt: (part, undo) => transaction.attemptPart(part, undo),
      });
      for (const topic of written.topics) topics.add(topic);
      return written.result;
    };
    return this.enqueue(run, { ...options, locks: options.locks ?? "installation" });
  }

  /** Runs bookkeeping, which locks no organization unless what it writes depends on what it reads. */
  touch(run: (db: Kysely<Schema>) => Promise<void>, options: BookkeepingOptions): Promise<void> {
    return this.enqueue(({ db }) => run(db), options);
  }

  /** Runs `run` in the next transaction with these locks; without any for bookkeeping. */
  async enqueue<T>(run: Run<T>, options: WriteOptions): Promise<T> {
    const { locks } = options;
    if (typeof locks !== "function") return this.#wait(run, locks, options);
    let known = await locks(this.#options.reader);
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      try {
        return await this.#wait(
          async (transaction, held) => {
            const missing = held?.missing(await locks(transaction.db)) ?? [];
            if (missing.length > 0) throw new LocksGrew(missing);
            return run(transaction, held);
          },
          known,
          options,
        );
      } catch (error) {
        if (!(error instanceof LocksGrew)) throw error;
        known = [...known, ...error.missing];
      }
    }
    throw new StoreUnavailable("what a write has to lock grew each time that it was read");
  }

  /** Returns why a write was not accepted, until a {@link probe} finds that the next one would be. */
  get problem(): string | undefined {
    return this.#level.problem ?? this.#problem;
  }

  /** Tries a change while there is a problem, rolls it back, and clears the problem when the change succeeds. */
  async probe(): Promise<void> {
    if (this.problem === undefined) return;
    const isTaken = await this.enqueue(({ client }) => tryChange(client), {}).then(
      () => true,
      () => false,
    );
    if (isTaken) this.#problem = undefined;
  }

  /** Waits for the writes in progress and rejects later ones. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#lanes.values()].map(({ running }) => running));
  }

  async #wait<T>(
    run: Run<T>,
    locks: LockSet | undefined,
    { signal, asLeader = false }: WriteOptions,
  ): Promise<T> {
    signal?.throwIfAborted();
    if (this.#closed) throw new StoreUnavailable("the store is closed");
    if (this.#waiting >= QUEUE_LIMIT) throw new StoreUnavailable("too many writes are waiting");
    const held = locks && new HeldLocks(locks);
    const deadline = this.#options.deadline();
    const lane = this.#laneOf(locks);
    return new Promise<T>((resolve, reject) => {
      lane.add({
        run: async (transaction) => {
          if (asLeader) await this.#requireLead(transaction.client);
          return run(transaction, held);
        },
        held,
        isJob: asLeader,
        signal,
        deadline,
        waitsUntil: deadline ?? performance.now() + LOCK_WAIT_MS,
        resolve: resolve as WaitingWrite["resolve"],
        reject,
      });
      if (asLeader) this.#turns.beginNext();
      // Delayed, so that requests of the same turn of the event loop join the group.
      lane.running ??= new Promise((done) => setImmediate(() => void this.#drain(lane).then(done)));
    });
  }

  #laneOf(locks: LockSet | undefined): Lane {
    const name = typeof locks === "object" ? locks.map(String).sort().join() : (locks ?? "bookkeeping");
    const known = this.#lanes.get(name);
    if (known) return known;
    const lane = new Lane(name, locks, (by) => {
      this.#waiting += by;
    });
    this.#lanes.set(name, lane);
    return lane;
  }

  async #drain(lane: Lane): Promise<void> {
    while (!lane.isEmpty) {
      const end = await this.#turns.take(lane.keys, () => lane.purpose, lane.isContended);
      // All writes may have left meanwhile.
      if (!lane.isEmpty) await this.#commitGroup(lane);
      end();
    }
    lane.endWait(performance.now());
    lane.running = undefined;
    this.#lanes.delete(lane.name);
  }

  async #commitGroup(lane: Lane): Promise<void> {
    let client: pg.PoolClient & WriteClient;
    try {
      client = (await this.#options.pool.connect()) as typeof client;
    } catch (error) {
      const failed = this.#failed(error);
      lane.reject(() => failed);
      return;
    }
    const members: WaitingWrite[] = [];
    try {
      await this.#transact(client, lane, members);
      client.release();
    } catch (error) {
      const failed = this.#failed(error);
      for (const write of members) write.reject(failed);
      if (members.length === 0 && isTimeout(error)) {
        // Others get the turn and the connection meanwhile; the writes that may wait longer request both again.
        const isLate = ({ deadline }: WaitingWrite) => deadline !== undefined;
        lane.recordContention((write) => (isLate(write) ? deadlinePassed() : failed));
      } else if (members.length === 0) lane.reject(() => failed);
      client.release(isBroken(error) || !(await rollback(client)));
    }
  }

  /** Commits the lane's writes. @throws the engine's error; `members` are the writes that failed with it */
  async #transact(client: WriteClient, lane: Lane, members: WaitingWrite[]): Promise<void> {
    let hasSavepoints = false;
    const fail = (cause: unknown) => this.#failed(cause);
    // The changes of a write are sent with the work that follows, unless the engine would be idle meanwhile.
    const defersSending = () => !lane.isEmpty || this.#turns.underWay > 1;
    for (let attempt = 1; ; attempt++) {
      const transaction = new Transaction(client, fail, defersSending, hasSavepoints);
      try {
        this.#level.require(await transaction.begin(lane));
        const settled = await this.#attemptGroup(transaction, lane, members);
        await transaction.commit(this.#options.audit);
        transaction.measure(this.#options.measures, members.length);
        for (const settle of settled) settle();
        this.#options.listeners.expect(transaction.topics);
        this.#options.listeners.call();
        this.#options.onCommitted(transaction.topics);
        return;
      } catch (error) {
        if (error instanceof WriteFailed) {
          error.settle();
          await client.query("rollback");
          return;
        }
        const needsSavepoints = error instanceof NeedsSavepoints;
        if (!needsSavepoints && (!isRetryable(error) || attempt >= MAX_ATTEMPTS)) throw error;
        await client.query("rollback");
        lane.putBack(members.splice(0));
        hasSavepoints ||= needsSavepoints;
        if (!needsSavepoints) await pauseBefore(attempt + 1);
      }
    }
  }

  async #attemptGroup(
    transaction: Transaction,
    lane: Lane,
    members: WaitingWrite[],
  ): Promise<(() => void)[]> {
    const settled: (() => void)[] = [];
    const started = performance.now();
    do {
      const write = lane.next();
      if (!write) break;
      members.push(write);
      settled.push(await transaction.attempt(write));
    } while (performance.now() - started < this.#options.groupMs);
    return settled;
  }

  async #requireLead(client: pg.ClientBase): Promise<void> {
    const leader = this.#options.leader();
    if (!leader || !(await isStillLeader(client, leader.processId)))
      throw new StoreUnavailable("another server runs the jobs");
  }

  #failed(cause: unknown): StoreUnavailable {
    if (cause instanceof StoreUnavailable) return cause;
    const problem = storageProblem(cause);
    this.#problem = problem ?? this.#problem;
    return new StoreUnavailable("the database did not take the write", { problem, cause });
  }
}
