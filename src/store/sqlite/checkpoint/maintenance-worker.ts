import { parentPort, workerData } from "node:worker_threads";
import Database from "better-sqlite3";
import type { MaintenanceRequest, MaintenanceResult } from "./maintenance-thread.ts";

// The thread of Maintenance: one task at a time, each answered once.

/** It waits for no other process: work that it skips now is done later. */
const raw = new Database(workerData as string, { timeout: 0 });
// The commit of a merge is synced, too: later commits in the log depend on it.
raw.pragma("synchronous = FULL");
raw.pragma("wal_autocheckpoint = 0");

/** Prepared by the first merge: a checkpoint needs no index of texts. */
let merging: Database.Statement<[number]> | undefined;

function merge(pages: number): void {
  // The number must reach the index as an integer; the driver binds reals.
  merging ??= raw.prepare(
    "insert into project_search (project_search, rank) values ('merge', cast(? as integer))",
  );
  merging.run(pages);
}

const changes = raw.prepare<[], number>("select total_changes()").pluck();

/** Number of rows that the index reports as changed for a merge with nothing to do. */
const IDLE_CHANGES = 1;

function done(order: MaintenanceRequest): MaintenanceResult {
  try {
    if ("start" in order) return {};
    if ("mergePages" in order) {
      const before = changes.get() ?? 0;
      merge(order.mergePages);
      return { hasMerged: (changes.get() ?? 0) - before > IDLE_CHANGES };
    }
    // PASSIVE neither waits for other connections nor makes them wait.
    const [pass] = raw.pragma("wal_checkpoint(PASSIVE)") as [NonNullable<MaintenanceResult["pass"]>];
    return { pass };
  } catch (error) {
    const { message, code } = error as Error & { code?: string };
    return { failure: { message, code: code ?? "" } };
  }
}

parentPort?.on("message", (order: MaintenanceRequest) => parentPort?.postMessage(done(order)));
