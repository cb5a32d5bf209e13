import { parentPort, workerData } from "node:worker_threads";
import Database from "better-sqlite3";

/** What a checkpoint came to. */
export interface Pass {
  /** Pages in the log. */
  readonly log: number;
  /** How many of them, from the first, are in the file. */
  readonly checkpointed: number;
}

/** What the thread answers each message with. */
export type PassOutcome = Pass | { readonly failure: string; readonly code: string };

const raw = new Database(workerData as string);

// PASSIVE waits for nobody and lets nobody wait.
parentPort?.on("message", () => parentPort?.postMessage(checkpoint()));

function checkpoint(): PassOutcome {
  try {
    const [pass] = raw.pragma("wal_checkpoint(PASSIVE)") as [Pass];
    return pass;
  } catch (error) {
    const { message, code } = error as Error & { code?: string };
    return { failure: message, code: code ?? "" };
  }
}
