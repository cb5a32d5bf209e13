import { Worker } from "node:worker_threads";
import { isSyncFailure } from "../storage-problem.ts";

/** A task: a checkpoint pass over the log, a merge of some pages of the text index, or only starting the thread. */
export type MaintenanceRequest =
  | { readonly checkpoint: true }
  | { readonly mergePages: number }
  | { readonly start: true };

/** The result of a checkpoint. */
export interface Pass {
  /** Pages in the log. */
  readonly log: number;
  /** Number of pages, from the first, that are copied to the file. */
  readonly checkpointed: number;
}

export interface MaintenanceResult {
  /** The result of a checkpoint. */
  readonly pass?: Pass;
  /** True if there was anything to merge. */
  readonly hasMerged?: boolean;
  readonly failure?: { readonly message: string; readonly code: string };
}

/**
 * Maintains the file alongside the main thread, on its own connection. The thread starts with the first task and again
 * after it dies, and keeps the process alive only while a task runs.
 */
export class Maintenance {
  readonly #file: string;
  #thread: Worker | undefined;
  #isBusy = false;

  constructor(file: string) {
    this.#file = file;
  }

  /** True while a task runs; another one would wait for it. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Starts the thread if there is none; tasks do so, too, and wait for it. */
  async start(): Promise<void> {
    if (!this.#thread) await this.order({ start: true });
  }

  /** @returns undefined when it failed, or the thread ended; later tasks try again */
  async order(order: MaintenanceRequest): Promise<MaintenanceResult | undefined> {
    let thread: Worker;
    try {
      this.#thread ??= this.#start();
      thread = this.#thread;
    } catch {
      // The system cannot start a thread now.
      return undefined;
    }
    // The next write may wait for this task; nothing else keeps the process alive for it.
    thread.ref();
    this.#isBusy = true;
    const result = await new Promise<MaintenanceResult | undefined>((resolve) => {
      const onEnd = () => resolve(undefined);
      thread.once("exit", onEnd);
      thread.once("message", (message: MaintenanceResult) => {
        thread.off("exit", onEnd);
        resolve(message);
      });
      thread.postMessage(order);
    });
    this.#isBusy = false;
    thread.unref();
    if ("checkpoint" in order && result?.failure && isSyncFailure(result.failure)) {
      exitOnSyncFailure(result.failure.message);
      return new Promise(() => {});
    }
    return result?.failure ? undefined : result;
  }

  /** Must not be called while a task runs. */
  async close(): Promise<void> {
    await this.#thread?.terminate();
  }

  #start(): Worker {
    const thread = new Worker(new URL("./maintenance-worker.ts", import.meta.url), {
      workerData: this.#file,
    });
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

/**
 * Ends the process with an uncaught error when the disk did not accept what a checkpoint copied. The engine counts the
 * pages of earlier passes as copied and would skip them on a retry. The kernel may have dropped them, and yet a second
 * sync would report success. The next start copies the whole log, which is on the disk.
 */
export function exitOnSyncFailure(message: string): void {
  setImmediate(() => {
    throw new Error(`the disk did not take what was copied into the database file: ${message}`);
  });
}
