import { Worker } from "node:worker_threads";

/** A task that keeps the processor busy for as long as the database is large. */
export interface BackupTask {
  /** Copies the database into an empty file, or checks it: {@link requireCurrentDatabase}. */
  readonly task: "copy" | "requireCurrent";
  readonly file: string;
  /** The file that a copy fills. */
  readonly into?: string;
}

/** The error of a task; threads do not pass on subclasses of Error. */
export interface BackupFailure {
  readonly message: string;
  readonly code?: string;
}

/** Runs a task in a thread of its own, so that the process still answers signals. @throws Error of the task */
export function runBackupTask(task: BackupTask): Promise<void> {
  const thread = new Worker(new URL("./backup-worker.ts", import.meta.url), { workerData: task });
  return new Promise((resolve, reject) => {
    thread.once("message", (failure: BackupFailure | undefined) => {
      if (failure) reject(Object.assign(new Error(failure.message), failure));
      else resolve();
    });
    thread.once("error", reject);
    // Has no effect after a message.
    thread.once("exit", (code) => reject(new Error(`the thread of the backup ended with code ${code}`)));
  });
}
