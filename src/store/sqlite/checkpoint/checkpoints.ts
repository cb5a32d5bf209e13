import type Database from "better-sqlite3";
import type { Maintenance, Pass } from "./maintenance-thread.ts";

/**
 * The log is copied into the file whenever it has grown by so many pages of
 * 4 KiB, which is the engine's own default: a page that many writes change is
 * copied once, and little is left for the writes to wait for.
 */
export const CHECKPOINT_PAGES = 1_000;

/** Writes wait for this many pages to be copied; for more only when no pass alongside them gets closer. */
const FEW_PAGES = 100;

const EMPTY: Pass = { log: 0, checkpointed: 0 };

/**
 * Copies the log into the file in the thread of upkeep, since that forces the
 * disk twice and takes milliseconds. Passes run alongside the writes, which go on
 * meanwhile, so none of them reaches the end of the log. Once few pages are left,
 * the next transaction waits for a last pass; after that the engine begins the
 * log again from its start. Where the disk is slower than the writes, they wait for more.
 */
export class Checkpoints {
  readonly #upkeep: Maintenance;
  readonly #look: Database.Statement<[], Pass>;
  #running: Promise<void> | undefined;
  /** The result of the last pass. */
  #last: Pass = EMPTY;
  /** It copied something that those before had not: another one may, too. */
  #hasProgressed = false;
  /** By how many pages the log was ahead of the file before it. */
  #ahead = Number.POSITIVE_INFINITY;

  constructor(upkeep: Maintenance, writing: Database.Database) {
    writing.pragma("wal_autocheckpoint = 0");
    // Nobody knows whether what a process left in the log when it was killed has been forced. A force of
    // the log does not write again what the disk refused before; this writes it to another file, and forces that.
    writing.pragma("wal_checkpoint(PASSIVE)");
    this.#upkeep = upkeep;
    this.#look = writing.prepare<[], Pass>("pragma wal_checkpoint(NOOP)");
  }

  /** To be awaited while no transaction is open. */
  async keepShort(): Promise<void> {
    // The thread answers one order at a time, and a start is one.
    if (this.#running || this.#upkeep.isBusy) return;
    const log = this.#pages();
    if (log === undefined) return;
    if (log < this.#last.log) {
      // The engine has begun it again.
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
    } else if (log - this.#last.log >= CHECKPOINT_PAGES) {
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
  }

  #pass(): Promise<void> {
    const before = this.#last;
    this.#running = this.#upkeep.order({ checkpoint: true }).then((result) => {
      this.#running = undefined;
      this.#last = result?.pass ?? { ...before, log: before.log + CHECKPOINT_PAGES };
      // Otherwise somebody reads an older state, a backup perhaps: waiting would not help.
      this.#hasProgressed = this.#last.checkpointed > before.checkpointed;
    });
    return this.#running;
  }
}
