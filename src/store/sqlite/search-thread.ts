import { Worker } from "node:worker_threads";
import { searchTooLong } from "../../domain/error.ts";
import type { SearchName, SearchParameters, SearchResult } from "../search.ts";
import { type Scope, StoreUnavailable } from "../store.ts";
import { Turns } from "./search-turns.ts";

/** How long one search may take; a test of every row of a million takes about half of it. */
const LIMIT_MS = 2_000;

/** Searches that wait; a few milliseconds each, so that the last one waits about a second. */
const WAITING = { each: 100, all: 1_000 } as const;

/** A search keeps some thousand rows and one page; a thread that takes more ends, and another starts. */
const MEMORY = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 128 } as const;

/** What the thread starts with. */
export interface SearchThreadData {
  readonly file: string;
  readonly limitMs: number;
  /** One element: number of an order that nobody waits for any more. */
  readonly cancelled: Int32Array;
}

export interface SearchOrder {
  readonly number: number;
  readonly name: SearchName;
  readonly scope: Scope;
  readonly parameters: SearchParameters<SearchName>;
}

export type SearchAnswer = { readonly number: number } & (
  | { readonly result: unknown }
  | { readonly ended: "late" | "cancelled" }
  /** What went wrong, with its place, for the log. */
  | { readonly failure: string }
);

interface Waiting {
  readonly order: SearchOrder;
  readonly resolve: (result: never) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Searches beside the main thread, one at a time, on a connection of their own.
 * The thread starts with the first one and anew after its death, and keeps no
 * process alive.
 */
export class Searches {
  readonly #file: string;
  readonly #limitMs: number;
  readonly #settled: () => Promise<void>;
  readonly #turns = new Turns<Waiting>(WAITING);
  readonly #cancelled = new Int32Array(new SharedArrayBuffer(4));
  #thread: Worker | undefined;
  #running: Waiting | undefined;
  #number = 0;
  #closed = false;

  /**
   * @param settled resolves when whatever is committed by now is on the disk
   * @param limitMs for tests
   */
  constructor(file: string, settled: () => Promise<void>, limitMs = LIMIT_MS) {
    this.#file = file;
    this.#settled = settled;
    this.#limitMs = limitMs;
  }

  /** As Store.search says. */
  search<N extends SearchName>(
    name: N,
    scope: Scope,
    parameters: SearchParameters<N>,
    signal?: AbortSignal,
  ): Promise<SearchResult<N>> {
    const { organizationId } = scope;
    if (this.#closed) return Promise.reject(new StoreUnavailable("the store is closed"));
    if (signal?.aborted) return Promise.reject(signal.reason);
    const { promise, resolve, reject } = Promise.withResolvers<SearchResult<N>>();
    // Numbers begin anew before the shared element's own range ends.
    this.#number = (this.#number % 0x7fff_ffff) + 1;
    // A caller has more about it than its scope, and some of that cannot cross.
    const order = { number: this.#number, name, scope: { organizationId }, parameters };
    const waiting: Waiting = { order, resolve, reject };
    if (!this.#turns.add(organizationId, waiting)) {
      return Promise.reject(new StoreUnavailable("too many searches are waiting"));
    }
    const leave = () => {
      this.#turns.remove(organizationId, waiting);
      if (this.#running === waiting) Atomics.store(this.#cancelled, 0, order.number);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", leave, { once: true });
    this.#go();
    return promise.finally(() => signal?.removeEventListener("abort", leave));
  }

  /** Ends the search under way, refuses what waits and what comes. */
  async close(): Promise<void> {
    this.#closed = true;
    for (let waiting = this.#turns.next(); waiting; waiting = this.#turns.next()) {
      waiting.reject(new StoreUnavailable("the store is closed"));
    }
    const thread = this.#thread;
    if (!thread) return;
    if (this.#running) Atomics.store(this.#cancelled, 0, this.#running.order.number);
    const { promise, resolve } = Promise.withResolvers<void>();
    thread.once("exit", () => resolve());
    // Kept alive for this: who closes a store waits for it.
    thread.ref();
    thread.postMessage("close");
    await promise;
  }

  #go(): void {
    if (this.#running) return;
    const next = this.#turns.next();
    if (!next) return;
    this.#running = next;
    try {
      this.#thread ??= this.#start();
      this.#thread.postMessage(next.order);
    } catch (cause) {
      // The system gives no thread now; each that waits tries once.
      this.#running = undefined;
      next.reject(new StoreUnavailable("there is no thread for searches", { cause }));
      this.#go();
    }
  }

  #start(): Worker {
    const workerData: SearchThreadData = {
      file: this.#file,
      limitMs: this.#limitMs,
      cancelled: this.#cancelled,
    };
    const thread = new Worker(new URL("./search-worker.ts", import.meta.url), {
      workerData,
      resourceLimits: MEMORY,
    });
    thread.unref();
    thread.on("message", (answer: SearchAnswer) => this.#settle(answer));
    let cause: unknown;
    thread.on("error", (error) => {
      cause = error;
    });
    thread.on("exit", () => {
      this.#thread = undefined;
      const failed = this.#running;
      this.#running = undefined;
      failed?.reject(new StoreUnavailable("the thread of searches ended", { cause }));
      if (!this.#closed) this.#go();
    });
    return thread;
  }

  #settle(answer: SearchAnswer): void {
    const done = this.#running;
    this.#running = undefined;
    // The thread sees what is committed; nobody is told of it before it is there for good.
    if ("result" in answer) void this.#settled().then(() => done?.resolve(answer.result as never));
    else if ("failure" in answer) done?.reject(new Error(`a search failed: ${answer.failure}`));
    else if (answer.ended === "late") done?.reject(searchTooLong(this.#limitMs));
    else done?.reject(new StoreUnavailable("the store is closed"));
    this.#go();
  }
}
