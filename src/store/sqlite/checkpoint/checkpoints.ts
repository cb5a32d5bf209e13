import type Database from "better-sqlite3";
import type { Maintenance, Pass } from "./maintenance-thread.ts";

/**
 * Number of 4 KiB pages by which the log grows before it is copied into the file; the engine's own default. A page
 * that many writes change is copied once, and little is left for the writes to wait for.
 */
export const CHECKPOINT_PAGES = 1_000;

/** Number of pages that writes wait for; they wait for more only when no pass alongside them gets closer. */
const FEW_PAGES = 100;

const EMPTY: Pass = { log: 0, checkpointed: 0 };

/**
 * Copies the log into the file in the maintenance thread, since that syncs the disk twice and takes milliseconds.
 * Passes run while writes continue, so none of them reaches the end of the log. Once few pages are left, the next
 * transaction waits for a last pass; after that the engine restarts the log from its beginning. If the disk is slower
 * than the writes, they wait for more pages.
 */
export class Checkpoints {
  readonly #maintenance: Maintenance;
  readonly #look: Database.Statement<[], Pass>;
  #running: Promise<void> | undefined;
  /** The result of the last pass. */
  #last: Pass = EMPTY;
  /** True if the last pass copied new pages, so that another one may, too. */
  #hasProgressed = false;
  /** Number of pages by which the log was ahead of the file before the last pass. */
  #ahead = Number.POSITIVE_INFINITY;

  constructor(maintenance: Maintenance, writing: Database.Database) {
    writing.pragma("wal_autocheckpoint = 0");
    // A killed process may have left a log that was never synced. Syncing the log does not rewrite pages that the disk
    // rejected before; this writes them to another file, and syncs that.
    writing.pragma("wal_checkpoint(PASSIVE)");
    this.#maintenance = maintenance;
    this.#look = writing.prepare<[], Pass>("pragma wal_checkpoint(NOOP)");
  }

  /** To be awaited while no transaction is open. */
  async keepShort(): Promise<void> {
    // The thread runs one task at a time, and a start is one.
    if (this.#running || this.#maintenance.isBusy) return;
    const log = this.#pages();
    if (log === undefined) return;
    if (log < this.#last.log) {
      // The engine has restarted the log.
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

  /** Length of the log; undefined if the engine does not report it; a later commit fails if that matters. */
  #pages(): number | undefined {
    try {
      return this.#look.get()?.log;
    } catch {
      return undefined;
    }
  }

  /** Waits for a pass in progress. */
  async close(): Promise<void> {
    await this.#running;
  }

  #pass(): Promise<void> {
    const before = this.#last;
    this.#running = this.#maintenance.order({ checkpoint: true }).then((result) => {
      this.#running = undefined;
      this.#last = result?.pass ?? { ...before, log: before.log + CHECKPOINT_PAGES };
      // Otherwise another connection reads an older snapshot, such as a backup: waiting would not help.
      this.#hasProgressed = this.#last.checkpointed > before.checkpointed;
    });
    return this.#running;
  }
}
