import { Worker } from "node:worker_threads";
import type Database from "better-sqlite3";
import type { Pass, PassOutcome } from "./checkpoint-thread.ts";

/**
 * The log is copied into the file whenever it has grown by so many pages of
 * 4 KiB, which is the engine's own default: a page that many writes change is
 * copied once, and little is left for the writes to wait for.
 */
export const DUE_PAGES = 1_000;

/** Writes wait for this many pages to be copied; for more only when no pass beside them gets closer. */
const FEW_PAGES = 100;

const EMPTY: Pass = { log: 0, checkpointed: 0 };

/** Called when the disk did not take what was forced; ends the process. */
type OnLostForce = (error: Error) => void;

/**
 * Copies the log into the file in a thread of its own, since that forces the
 * disk twice and takes milliseconds. Passes run beside the writes, which go on
 * meanwhile, so none of them reaches the end of the log. Once few pages are left,
 * the next transaction waits for a last pass; after that the engine begins the
 * log anew. Where the disk is slower than the writes, they wait for more.
 */
export class Checkpoints {
  readonly #file: string;
  readonly #onLostForce: OnLostForce;
  readonly #look: Database.Statement<[], Pass>;
  #thread: Worker | undefined;
  #running: Promise<void> | undefined;
  /** What the last pass came to. */
  #last: Pass = EMPTY;
  /** It copied something that those before had not: another one may, too. */
  #hasProgressed = false;
  /** By how many pages the log was ahead of the file before it. */
  #ahead = Number.POSITIVE_INFINITY;

  constructor(file: string, writing: Database.Database, onLostForce: OnLostForce) {
    this.#file = file;
    this.#onLostForce = onLostForce;
    this.#look = writing.prepare<[], Pass>("pragma wal_checkpoint(NOOP)");
  }

  /** The disk is at work on a pass. */
  get isBusy(): boolean {
    return this.#running !== undefined;
  }

  /** To be awaited while no transaction is open. */
  async keepShort(): Promise<void> {
    if (this.#running) return;
    const log = this.#pages();
    if (log === undefined) return;
    if (log < this.#last.log) {
      // The engine has begun it anew.
      this.#last = EMPTY;
      this.#hasProgressed = false;
    }
    const ahead = log - this.#last.checkpointed;
    if (this.#hasProgressed && ahead > 0) {
      const isNearest = ahead <= FEW_PAGES || ahead > this.#ahead / 2;
      this.#ahead = ahead;
      const pass = this.#pass();
      if (!isNearest) return;
      await pass;
      this.#hasProgressed = false;
    } else if (log - this.#last.log >= DUE_PAGES) {
      this.#ahead = Number.POSITIVE_INFINITY;
      void this.#pass();
    }
  }

  /** Length of the log; undefined when the engine does not say, which a later commit will fail of if it matters. */
  #pages(): number | undefined {
    try {
      return this.#look.get()?.log;
    } catch {
      return undefined;
    }
  }

  /** Waits for a pass under way. */
  async close(): Promise<void> {
    await this.#running;
    await this.#thread?.terminate();
  }

  #pass(): Promise<void> {
    const before = this.#last;
    this.#running = this.#ask().then((pass) => {
      this.#running = undefined;
      this.#last = pass ?? { ...before, log: before.log + DUE_PAGES };
      // Otherwise somebody reads an older state, a backup perhaps: waiting would not help.
      this.#hasProgressed = this.#last.checkpointed > before.checkpointed;
    });
    return this.#running;
  }

  /** @returns undefined when the pass failed, or its thread ended; later ones try again */
  #ask(): Promise<Pass | undefined> {
    let thread: Worker;
    try {
      this.#thread ??= this.#start();
      thread = this.#thread;
    } catch {
      // The system gives no thread now.
      return Promise.resolve(undefined);
    }
    // The next write may wait for this, and the process for nothing else.
    thread.ref();
    return new Promise<Pass | undefined>((resolve) => {
      const onEnd = () => resolve(undefined);
      thread.once("exit", onEnd);
      thread.once("message", (outcome: PassOutcome) => {
        thread.off("exit", onEnd);
        if (!("failure" in outcome)) return resolve(outcome);
        // A pass that is repeated skips what an earlier one copied, which is what was lost.
        if (outcome.code === "SQLITE_IOERR_FSYNC") return this.#onLostForce(new Error(outcome.failure));
        resolve(undefined);
      });
      thread.postMessage(undefined);
    }).finally(() => thread.unref());
  }

  #start(): Worker {
    const thread = new Worker(new URL("./checkpoint-thread.ts", import.meta.url), { workerData: this.#file });
    const forget = () => {
      if (this.#thread === thread) this.#thread = undefined;
    };
    // An error is followed by the exit.
    thread.on("error", forget);
    thread.on("exit", forget);
    thread.unref();
    return thread;
  }
}
