import { Worker } from "node:worker_threads";
import { isSyncFailure } from "../storage-problem.ts";

/** A pass of a checkpoint over the log, the merging of so many pages of the index of texts, or nothing but to be there. */
export type MaintenanceRequest =
  | { readonly checkpoint: true }
  | { readonly mergePages: number }
  | { readonly start: true };

/** The result of a checkpoint. */
export interface Pass {
  /** Pages in the log. */
  readonly log: number;
  /** Number of them, from the first, that are in the file. */
  readonly checkpointed: number;
}

export interface MaintenanceResult {
  /** Of a checkpoint. */
  readonly pass?: Pass;
  /** True if there was anything to merge. */
  readonly hasMerged?: boolean;
  readonly failure?: { readonly message: string; readonly code: string };
}

/**
 * The file's upkeep alongside the main thread, on a connection of its own. The
 * thread starts with the first order and again after its death, and keeps no
 * process alive but for an order under way.
 */
export class Maintenance {
  readonly #file: string;
  #thread: Worker | undefined;
  #isBusy = false;

  constructor(file: string) {
    this.#file = file;
  }

  /** An order is under way; another one would wait for it. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Starts the thread if there is none; orders do so, too, and wait for it. */
  async start(): Promise<void> {
    if (!this.#thread) await this.order({ start: true });
  }

  /** @returns undefined when it failed, or the thread ended; later orders try again */
  async order(order: MaintenanceRequest): Promise<MaintenanceResult | undefined> {
    let thread: Worker;
    try {
      this.#thread ??= this.#start();
      thread = this.#thread;
    } catch {
      // The system gives no thread now.
      return undefined;
    }
    // The next write may wait for this, and the process for nothing else.
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

  /** Nothing may be under way. */
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
 * Ends the process, by an error that nobody catches, when the disk did not take
 * what a checkpoint copied. The engine counts pages as copied that passes before
 * that one wrote, and would skip them when it is tried again, while the kernel may
 * have given them up; a second force would say that all is well. The next start
 * copies the whole log, which is on the disk.
 */
export function exitOnSyncFailure(message: string): void {
  setImmediate(() => {
    throw new Error(`the disk did not take what was copied into the database file: ${message}`);
  });
}
