import { constants, getPriority, platform, setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { ROWS_PER_CHECK } from "../../expressions.ts";
import { openConnection } from "../connection.ts";
import { type SearchOrder, type SearchReply, type SearchThreadData, SHARED } from "./search-thread.ts";
import { SEARCHES, type SearchLimit } from "./searches.ts";

// The thread of Searches: one request at a time, each answered once.

/**
 * Cache size, equal to that of other connections, used only for pages beyond {@link MAPPED_BYTES}.
 */
const CACHE_KIB = 16_000;

/**
 * Bytes of the file that are memory-mapped, up to the limit of the engine itself. Without a copy of
 * each page, a search of many rows takes half the time. No process shortens the file while the
 * server runs.
 */
const MAPPED_BYTES = 2 ** 31;

/**
 * Added to the niceness of the process: by the weights of Linux, its other threads get three times
 * as much processor time.
 */
const ADDED_NICENESS = 5;

/** The error that ends a query; it is thrown through the engine. */
class SearchEnded extends Error {
  readonly why: "late" | "cancelled" | "crowded" | "attempt";
  constructor(why: SearchEnded["why"]) {
    super(why);
    this.why = why;
  }
}

const { file, limitMs, crowdedMs, shared } = workerData as SearchThreadData;
const { raw, db } = openConnection(file, "reader");
raw.pragma(`cache_size = -${CACHE_KIB}`);
raw.pragma(`mmap_size = ${MAPPED_BYTES}`);
// Only Linux applies it to a single thread; elsewhere it would slow the whole process.
if (platform() === "linux") {
  try {
    setPriority(Math.min(getPriority() + ADDED_NICENESS, constants.priority.PRIORITY_LOW));
  } catch {
    // A sandbox may forbid it; searches work all the same.
  }
}
let running = 0;
let endsAt = 0;
/** Time from which on it lets others go first. */
let yieldsAt = 0;
let rowsLeft = Number.POSITIVE_INFINITY;

raw.function("in_time", () => {
  if (Atomics.load(shared, SHARED.cancelled) === running) throw new SearchEnded("cancelled");
  const now = performance.now();
  if (now > endsAt) throw new SearchEnded("late");
  if (now > yieldsAt && Atomics.load(shared, SHARED.crowded) === 1) throw new SearchEnded("crowded");
  rowsLeft -= ROWS_PER_CHECK;
  if (rowsLeft < 0) throw new SearchEnded("attempt");
  return 1;
});

const limit: SearchLimit = {
  async attempt(rows, query) {
    rowsLeft = rows;
    try {
      return await query();
    } catch (error) {
      if (error instanceof SearchEnded && error.why === "attempt") return undefined;
      throw error;
    } finally {
      rowsLeft = Number.POSITIVE_INFINITY;
    }
  },
};

async function answer({ number, name, scope, parameters }: SearchOrder): Promise<SearchReply> {
  running = number;
  const now = performance.now();
  endsAt = now + limitMs;
  yieldsAt = crowdedMs === undefined ? Number.POSITIVE_INFINITY : now + crowdedMs;
  // One state for all its queries, no older than the request.
  raw.exec("begin");
  try {
    return { number, result: await SEARCHES[name](db, scope, parameters as never, limit) };
  } catch (error) {
    if (error instanceof SearchEnded && error.why !== "attempt") return { number, ended: error.why };
    return { number, failure: String((error as Error).stack ?? error) };
  } finally {
    // Some failures, such as a disk error, have ended the transaction already.
    if (raw.inTransaction) raw.exec("rollback");
  }
}

parentPort?.on("message", async (order: SearchOrder | "close") => {
  if (order === "close") {
    raw.close();
    parentPort?.close();
    return;
  }
  parentPort?.postMessage(await answer(order));
});
