import { parentPort, workerData } from "node:worker_threads";
import Database from "better-sqlite3";
import { requireCurrentDatabase } from "./backup.ts";
import type { BackupFailure, BackupTask } from "./backup-thread.ts";

// The thread of one task on a database file: it answers once, and ends.

/** Does the task; see {@link BackupTask}. */
function run({ task, file, into }: BackupTask): void {
  const raw = new Database(file, { readonly: true });
  try {
    if (task === "requireCurrent") requireCurrentDatabase(raw, file);
    // One statement copies one state, without the pages of deleted rows.
    else raw.prepare("vacuum into ?").run(into);
  } finally {
    raw.close();
  }
}

function failureOf(): BackupFailure | undefined {
  try {
    run(workerData as BackupTask);
    return undefined;
  } catch (error) {
    const { message, code } = error as Error & { code?: string };
    return { message, ...(code !== undefined && { code }) };
  }
}

parentPort?.postMessage(failureOf());
