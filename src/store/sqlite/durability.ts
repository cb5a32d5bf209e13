import { closeSync, fdatasync, fdatasyncSync, openSync } from "node:fs";
import { performance } from "node:perf_hooks";
import type Database from "better-sqlite3";
import { Checkpoints } from "./checkpoint/checkpoints.ts";
import type { Maintenance } from "./checkpoint/maintenance-thread.ts";
import type { Snapshot } from "./snapshot.ts";

/** How the commits of the writer come to outlast a loss of power. */
export interface Durability {
  /**
   * Commits the open transaction; resolves when it is on the disk for good. No
   * read sees anything of it before.
   *
   * @param isLonely whether it holds one write and no other waits
   * @throws what the engine says when it does not commit; the transaction may then still be open
   */
  commit(isLonely: boolean): Promise<void>;
  /** Resolves when whatever is committed by now is on the disk. */
  settled(): Promise<void>;
  /** Keeps the log beside the file short; to be awaited between a commit and the next transaction. */
  tidy(): Promise<void>;
  /** Nothing may be under way. */
  close(): Promise<void>;
}

/**
 * A lonely write is forced on the spot where the disk takes no longer than this,
 * half of what a group may work: the way to a thread and back costs such a write
 * 150 µs of 900 on a machine at rest, and twice its time on a busy one.
 */
const QUICK_MS = 4;

/**
 * It holds up whatever else the event loop has to do. That is nothing while the
 * loop has had no more events since the last commit, those of the upkeep aside:
 * the write's own request, and the end of a force beside it. A guess on the
 * careful side, since a new connection for each write is an event too.
 */
const QUIET_EVENTS = 2;

/** After a slow force at most so many lonely writes are forced beside before another is tried on the spot. */
const MOST_SPARED = 16;

/** Writes to the disk what a file holds in memory, as fdatasync of node:fs does. */
export type Force = (file: number, done: (error: Error | null) => void) => void;

export interface DurabilityOptions {
  /** The database file. */
  readonly file: string;
  readonly writing: Database.Database;
  readonly snapshot: Snapshot;
  readonly upkeep: Maintenance;
}

/** Each commit forces the disk itself, and nothing else happens meanwhile: what an ordinary server does. */
export function forcedByCommit({ writing, snapshot }: DurabilityOptions): Durability {
  return {
    async commit() {
      snapshot.renew();
      writing.exec("commit");
    },
    settled: async () => undefined,
    tidy: async () => undefined,
    close: async () => undefined,
  };
}

/**
 * The engine writes a commit to its log without forcing it; then the log is
 * forced in a thread of the pool, while this thread goes on with reads and with
 * the requests of the next group. Only a lonely write is forced on the spot, while
 * the loop has nothing else to do, the disk is quick and no upkeep keeps it busy.
 * The rules that make this safe:
 *
 * - The log is one file for as long as a connection is open: a checkpoint of any
 *   process begins it anew or shortens it, and none replaces it. So a handle
 *   opened once is always that of the log, and forcing it forces whatever any
 *   process has written there before, in its order. Closing the handle releases
 *   no lock: the engine locks the other two files, never this one.
 * - One commit at a time is on its way to the disk. Until it is there, reads stay
 *   at what was committed before it, held by a transaction, and what searches
 *   found waits: no answer and no event tells of rows that a loss of
 *   power could take back. Only another process can see them a moment early.
 * - No transaction is open meanwhile, so that another process gets its turn to write.
 * - A merge of the index of texts is committed without a force of its own. A loss
 *   of power may take it back, and it says nothing new.
 * - A force that fails ends the process. What it was to write may be lost and is
 *   not tried again by the kernel, whatever a second force says. The next start
 *   copies what the log holds into the file and forces that, before it serves.
 */
export function forcedBeside(
  { file, writing, snapshot, upkeep }: DurabilityOptions,
  force?: Force,
): Durability {
  // In write-ahead mode this forces at checkpoints only, and when the log begins anew.
  writing.pragma("synchronous = NORMAL");
  writing.pragma("wal_autocheckpoint = 0");
  writing.pragma("wal_checkpoint(PASSIVE)");
  const log = openSync(`${file}-wal`, "r+");
  const checkpoints = new Checkpoints(upkeep, writing);
  const changes = writing.prepare<[], number>("select total_changes()").pluck();
  let forced = changes.get();
  let underWay = Promise.resolve();
  let eventsBefore = loopEvents();
  /** Lonely writes to force beside, and how many that will be after the next slow one. */
  const spared = { left: 0, next: 1 };

  const commitAndForce = () => {
    snapshot.renew();
    writing.exec("commit");
    const began = performance.now();
    try {
      fdatasyncSync(log);
    } catch (error) {
      endOnLostForce(error as Error);
      underWay = new Promise(() => {});
      return underWay;
    }
    const isQuick = performance.now() - began <= QUICK_MS;
    spared.left = isQuick ? 0 : spared.next;
    spared.next = isQuick ? 1 : Math.min(2 * spared.next, MOST_SPARED);
    return Promise.resolve();
  };

  const commitAndForceBeside = async () => {
    try {
      snapshot.hold();
      writing.exec("commit");
      underWay = new Promise<void>((resolve) =>
        (force ?? fdatasync)(log, (error) => (error ? endOnLostForce(error) : resolve())),
      );
      await underWay;
    } finally {
      snapshot.renew();
    }
  };

  return {
    async commit(isLonely) {
      const changed = changes.get();
      if (changed === forced) {
        writing.exec("commit");
        return;
      }
      const events = loopEvents() - upkeep.answers;
      const isQuiet = isLonely && events - eventsBefore <= QUIET_EVENTS && !upkeep.isBusy;
      eventsBefore = events;
      const isOnTheSpot = isQuiet && !force && spared.left-- <= 0;
      await (isOnTheSpot ? commitAndForce() : commitAndForceBeside());
      forced = changed;
    },
    settled: () => underWay,
    tidy: () => checkpoints.keepShort(),
    async close() {
      await checkpoints.close();
      closeSync(log);
    },
  };
}

/** How many events the event loop has had; requests of one connection are one each. */
function loopEvents(): number {
  return performance.nodeTiming.uvMetricsInfo.events;
}

/** Thrown where nobody catches it: who wrote gets no answer, and a restart follows. */
export function endOnLostForce(cause: Error): void {
  setImmediate(() => {
    throw new Error(`the disk did not take what was written: ${cause.message}`, { cause });
  });
}
