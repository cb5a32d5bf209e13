import { performance } from "node:perf_hooks";
import type { Kysely } from "kysely";
import type pg from "pg";
import { Group } from "../group.ts";
import type { Listeners } from "../listeners.ts";
import { runWrite, type WriteSettings } from "../run-write.ts";
import type { Schema } from "../schema.ts";
import {
  type Actor,
  type BookkeepingOptions,
  type Change,
  StoreUnavailable,
  type WriteOptions,
  type WriteTransaction,
} from "../store.ts";
import { builderOfClient } from "./connection.ts";
import { LevelCheck } from "./feature-level.ts";
import { type LockSet, lockForWrite, stillLeads } from "./locks.ts";
import { deleteOwnedRows } from "./owned-rows.ts";
import type { Leader } from "./session.ts";
import { isBroken, isEngineFailure, isRetryable, storageProblem } from "./storage-problem.ts";
import { rollback, tryChange } from "./transaction.ts";

/** A group takes no more writes when it has worked this long, so that other servers get the lock. */
export const GROUP_MS = 8;

/** Writes waiting past this number are refused: the database is slower than the callers. */
const QUEUE_LIMIT = 10_000;

/** Times that a group is begun again after a deadlock or a failed serialization. */
const MAX_ATTEMPTS = 5;

export interface WriterOptions extends WriteSettings {
  readonly pool: pg.Pool;
  readonly groupMs: number;
  readonly listeners: Listeners;
  /** Called with the topics of a commit, after it. */
  readonly onCommitted: (topics: ReadonlySet<string>) => void;
  /** Returns the lead of this process; undefined while another runs the jobs. */
  readonly leader: () => Leader | undefined;
}

interface Job {
  readonly run: (session: Session) => Promise<unknown>;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

/** One open transaction with the locks that it holds. */
interface Session {
  readonly db: Kysely<Schema>;
  readonly client: pg.PoolClient;
  readonly group: Group;
  readonly featureLevel: number;
  readonly topics: Set<string>;
}

/** The writes that wait for the same locks. At most one transaction of this process holds or awaits them. */
interface Lane {
  readonly locks: LockSet | undefined;
  readonly queue: Job[];
  running: Promise<void> | undefined;
}

/**
 * Writes to PostgreSQL. Writes of one organization that wait at the same time share a commit, each in a savepoint of
 * its own; organizations go side by side. A transaction takes the locks of its organizations before it reads
 * anything, and so sees what a single writer would have shown it.
 */
export class Writer {
  readonly #options: WriterOptions;
  readonly #lanes = new Map<string, Lane>();
  #waiting = 0;
  #closed = false;
  #problem: string | undefined;
  readonly #level = new LevelCheck();

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  write<T>(
    actor: Actor,
    operation: string,
    fn: (tx: WriteTransaction) => Promise<T>,
    { locks = "installation", asLeader = false, signal }: WriteOptions,
  ): Promise<T> {
    return this.enqueue(
      async ({ db, client, group, featureLevel, topics }) => {
        if (asLeader) await this.#requireLead(client);
        const written = await runWrite(actor, operation, fn, this.#options, {
          db,
          group,
          featureLevel,
          deleteOwnedRows: (organizationId, onTable) => deleteOwnedRows(db, organizationId, onTable),
          // The index of texts is the engine's own.
          indexText: async () => 0,
          attempt: (part, undo) => this.#attemptPart(client, part, undo),
          checkChange: (change) => requireLock(locks, change),
        });
        for (const topic of written.topics) topics.add(topic);
        return written.result;
      },
      locks,
      signal,
    );
  }

  /** Runs bookkeeping, which takes no lock unless what it writes depends on what it reads. */
  touch(
    run: (db: Kysely<Schema>) => Promise<void>,
    { locks, asLeader = false }: BookkeepingOptions,
  ): Promise<void> {
    return this.enqueue(async ({ db, client }) => {
      if (asLeader) await this.#requireLead(client);
      await run(db);
    }, locks);
  }

  /** Runs `run` in a savepoint of the next transaction with these locks; without any for bookkeeping. */
  enqueue<T>(
    run: (session: Session) => Promise<T>,
    locks: LockSet | undefined,
    signal?: AbortSignal,
  ): Promise<T> {
    if (this.#closed) return Promise.reject(new StoreUnavailable("the store is closed"));
    if (this.#waiting >= QUEUE_LIMIT)
      return Promise.reject(new StoreUnavailable("too many writes are waiting"));
    const lane = this.#laneOf(locks);
    return new Promise<T>((resolve, reject) => {
      this.#waiting += 1;
      lane.queue.push({ run, signal, resolve: resolve as Job["resolve"], reject });
      // Not at once: requests of the same turn of the event loop join the group.
      lane.running ??= new Promise((done) => setImmediate(() => void this.#drain(lane).then(done)));
    });
  }

  /** Returns why a write was not taken, until a {@link probe} finds that the next would be. */
  get problem(): string | undefined {
    return this.#level.problem ?? this.#problem;
  }

  /** Tries a change while there is a problem, takes it back, and forgets the problem when both are taken. */
  async probe(): Promise<void> {
    if (this.problem === undefined) return;
    const isTaken = await this.enqueue(async ({ client }) => {
      await this.#level.check(client);
      await tryChange(client);
      return true;
    }, undefined).catch(() => false);
    if (isTaken) this.#problem = undefined;
  }

  /** Waits for the writes under way and refuses later ones. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#lanes.values()].map(({ running }) => running));
  }

  #laneOf(locks: LockSet | undefined): Lane {
    const key = locks === undefined ? "" : typeof locks === "string" ? locks : [...locks].sort().join();
    const known = this.#lanes.get(key);
    if (known) return known;
    const lane: Lane = { locks, queue: [], running: undefined };
    this.#lanes.set(key, lane);
    return lane;
  }

  async #drain(lane: Lane): Promise<void> {
    while (lane.queue.length > 0) await this.#commitGroup(lane);
    lane.running = undefined;
    for (const [key, each] of this.#lanes) if (each === lane) this.#lanes.delete(key);
  }

  async #commitGroup(lane: Lane): Promise<void> {
    let client: pg.PoolClient;
    try {
      client = await this.#options.pool.connect();
    } catch (error) {
      this.#rejectAll(lane, error);
      return;
    }
    const members: Job[] = [];
    try {
      await this.#transact(client, lane, members);
      client.release();
    } catch (error) {
      const failed = this.#failed(error);
      for (const job of members) job.reject(failed);
      if (members.length === 0) this.#rejectAll(lane, error);
      client.release(isBroken(error) || !(await rollback(client)));
    }
  }

  /** Makes one commit of the lane's writes. @throws the engine's error; `members` are the writes that failed with it */
  async #transact(client: pg.PoolClient, lane: Lane, members: Job[]): Promise<void> {
    const db = builderOfClient(client);
    const topics = new Set<string>();
    for (let attempt = 1; ; attempt++) {
      const group = new Group(db);
      try {
        await client.query("begin");
        // Bookkeeping, without locks, stores nothing that a level says.
        const featureLevel = lane.locks ? this.#level.require(await lockForWrite(client, lane.locks)) : 0;
        const settled = await this.#attemptGroup({ db, client, group, featureLevel, topics }, lane, members);
        await group.writeOut(this.#options.audit);
        await client.query("commit");
        for (const settle of settled) settle();
        this.#options.listeners.expect(topics);
        this.#options.listeners.call();
        this.#options.onCommitted(topics);
        return;
      } catch (error) {
        if (!isRetryable(error) || attempt === MAX_ATTEMPTS) throw error;
        await client.query("rollback");
        this.#waiting += members.length;
        lane.queue.unshift(...members.splice(0));
      }
    }
  }

  async #attemptGroup(session: Session, { queue }: Lane, members: Job[]): Promise<(() => void)[]> {
    const settled: (() => void)[] = [];
    const started = performance.now();
    do {
      const job = queue.shift();
      if (!job) break;
      this.#waiting -= 1;
      if (job.signal?.aborted) {
        job.reject(job.signal.reason);
        continue;
      }
      members.push(job);
      settled.push(await this.#attempt(session, job));
    } while (performance.now() - started < this.#options.groupMs);
    return settled;
  }

  async #attempt(session: Session, job: Job): Promise<() => void> {
    const { client, group } = session;
    const mark = group.mark();
    await client.query("savepoint attempt");
    try {
      const value = await job.run(session);
      await client.query("release savepoint attempt");
      return () => job.resolve(value);
    } catch (error) {
      // The transaction is lost with them, or is to be begun again.
      if (isBroken(error) || isRetryable(error)) throw error;
      await client.query("rollback to savepoint attempt; release savepoint attempt");
      group.backTo(mark);
      return () => job.reject(isEngineFailure(error) ? this.#failed(error) : error);
    }
  }

  async #attemptPart<T>(client: pg.PoolClient, part: () => Promise<T>, undo: () => void): Promise<T> {
    await client.query("savepoint part");
    try {
      const value = await part();
      await client.query("release savepoint part");
      return value;
    } catch (error) {
      // The transaction is lost with them: the part tells the first as any failure of the engine, and the second is
      // what begins it again.
      if (isRetryable(error)) throw error;
      if (isBroken(error)) throw this.#failed(error);
      await client.query("rollback to savepoint part; release savepoint part");
      undo();
      throw isEngineFailure(error) ? this.#failed(error) : error;
    }
  }

  async #requireLead(client: pg.PoolClient): Promise<void> {
    const leader = this.#options.leader();
    if (!leader || !(await stillLeads(client, leader.processId)))
      throw new StoreUnavailable("another server runs the jobs");
  }

  #rejectAll(lane: Lane, error: unknown): void {
    const failed = this.#failed(error);
    for (const job of lane.queue.splice(0)) {
      this.#waiting -= 1;
      job.reject(failed);
    }
  }

  #failed(cause: unknown): StoreUnavailable {
    if (cause instanceof StoreUnavailable) return cause;
    const problem = storageProblem(cause);
    this.#problem = problem ?? this.#problem;
    return new StoreUnavailable("the database did not take the write", { problem, cause });
  }
}

/** @throws Error for a change of what the write has not locked: another write may change it at the same time */
function requireLock(locks: LockSet, { organizationId, type, id }: Change): void {
  if (locks === "installation") return;
  if (organizationId !== null && locks.includes(organizationId)) return;
  const owner = organizationId === null ? "the installation" : `organization ${organizationId}`;
  throw new Error(`a write changes ${type} ${id} of ${owner}, which it has not locked`);
}
