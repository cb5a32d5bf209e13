import { performance } from "node:perf_hooks";
import type { HeldLocks } from "../held-locks.ts";
import { keysOf, type LockSet } from "./locks.ts";
import type { Transaction } from "./transaction.ts";
import type { Purpose } from "./turns.ts";

/** A write that waits for its turn. */
export interface WaitingWrite {
  readonly run: (transaction: Transaction) => Promise<unknown>;
  /** The locks of its changes; undefined for bookkeeping, which is limited to its columns. */
  readonly held: HeldLocks | undefined;
  /** True for a write of a job. */
  readonly isJob: boolean;
  readonly signal: AbortSignal | undefined;
  /** Time at which its caller stops waiting, by performance.now(); undefined if never. */
  readonly deadline: number | undefined;
  /** Time until which it waits for its locks, by performance.now(). */
  readonly waitsUntil: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Time in milliseconds that a transaction waits for its locks before it lets others run. It grows by WAIT_MS with each
 * failed attempt of the lane, up to MAX_WAIT_MS. A transaction that stops waiting loses its place in the queue before
 * those of other servers.
 */
const WAIT_MS = 200;
const MAX_WAIT_MS = 1_000;

/** Interval in milliseconds at which a blocked lane looks for writes that have waited too long. */
const CHECK_INTERVAL_MS = 50;

/** The writes of one process that wait for the same locks. */
export class Lane {
  readonly name: string;
  /** Undefined for bookkeeping, which locks no organization. */
  readonly locks: LockSet | undefined;
  readonly keys: readonly string[];
  /** The task that runs the lane's writes; undefined while there is none. */
  running: Promise<void> | undefined;
  readonly #writes: WaitingWrite[] = [];
  readonly #stopListening = new Map<WaitingWrite, () => void>();
  readonly #onCount: (by: number) => void;
  /** Number of transactions that failed to get the locks since the last one that got them. */
  #failedAttempts = 0;
  /** Time at which it began to wait for the locks, by performance.now(). */
  #waitsSince: number | undefined;
  #checks: NodeJS.Timeout | undefined;

  /** @param onCount called with the change in the number of waiting writes, negative when some leave */
  constructor(name: string, locks: LockSet | undefined, onCount: (by: number) => void) {
    this.name = name;
    this.locks = locks;
    this.keys = locks ? keysOf(locks) : [name];
    this.#onCount = onCount;
  }

  get isEmpty(): boolean {
    return this.#writes.length === 0;
  }

  /**
   * The purpose of the next transaction: that of a job if any job waits, so that the job's own connection can be used.
   */
  get purpose(): Purpose {
    if (!this.locks) return "bookkeeping";
    return this.#writes.some(({ isJob }) => isJob) ? "job" : "request";
  }

  /** Adds a write; one whose signal is aborted leaves the lane at once. */
  add(write: WaitingWrite): void {
    this.#writes.push(write);
    this.#onCount(1);
    const { signal } = write;
    if (!signal) return;
    const leave = () => {
      const place = this.#writes.indexOf(write);
      if (place === -1) return;
      this.#writes.splice(place, 1);
      this.#forget(write);
      write.reject(signal.reason);
    };
    signal.addEventListener("abort", leave, { once: true });
    this.#stopListening.set(write, () => signal.removeEventListener("abort", leave));
  }

  /** Takes the next write, if any. */
  next(): WaitingWrite | undefined {
    for (;;) {
      const write = this.#writes.shift();
      if (!write) return undefined;
      this.#forget(write);
      if (!write.signal?.aborted) return write;
      write.reject(write.signal.reason);
    }
  }

  /** Puts writes back at the front, to be tried again. */
  putBack(writes: readonly WaitingWrite[]): void {
    this.#writes.unshift(...writes);
    this.#onCount(writes.length);
  }

  /** True when the last transaction failed to get the locks. */
  get isContended(): boolean {
    return this.#failedAttempts > 0;
  }

  /** Starts waiting for the locks. @returns the time that the transaction waits, in milliseconds */
  beginWait(now: number): number {
    this.#waitsSince ??= now;
    const longest = Math.max(...this.#writes.map(({ waitsUntil }) => waitsUntil - now));
    return Math.max(1, Math.ceil(Math.min(longest, (this.#failedAttempts + 1) * WAIT_MS, MAX_WAIT_MS)));
  }

  /** Records that a transaction failed to get the locks, and rejects each write that has waited too long. */
  recordContention(error: (write: WaitingWrite) => unknown): void {
    this.#failedAttempts += 1;
    clearInterval(this.#checks);
    const check = () => this.reject(error, performance.now());
    check();
    this.#checks = setInterval(check, CHECK_INTERVAL_MS);
  }

  /** Records that a transaction has the locks, or that none waits. @returns the time since the wait began */
  endWait(now: number): number {
    const waitsSince = this.#waitsSince ?? now;
    this.#waitsSince = undefined;
    this.#failedAttempts = 0;
    clearInterval(this.#checks);
    return now - waitsSince;
  }

  /** Rejects the writes whose time limit for the locks is at or before `until`. */
  reject(error: (write: WaitingWrite) => unknown, until = Number.POSITIVE_INFINITY): void {
    const over = this.#writes.filter(({ waitsUntil }) => waitsUntil <= until);
    for (const write of over) {
      this.#writes.splice(this.#writes.indexOf(write), 1);
      this.#forget(write);
      write.reject(error(write));
    }
  }

  #forget(write: WaitingWrite): void {
    this.#onCount(-1);
    this.#stopListening.get(write)?.();
    this.#stopListening.delete(write);
  }
}
