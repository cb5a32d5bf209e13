import { Worker } from "node:worker_threads";
import { SearchTooLong } from "../../../domain/error.ts";
import { type Scope, StoreUnavailable } from "../../store.ts";
import { FairQueue, type SearchOwner } from "./search-turns.ts";
import type { SearchName, SearchParameters, SearchResult } from "./searches.ts";

/** Time limit of one search; a test of every row of a million takes about half of it. */
const LIMIT_MS = 2_000;

/**
 * Time limit of a search while others wait. Nearly all take less; after that, other searches of the
 * same organization and of others no longer wait for it.
 */
const CROWDED_MS = 25;

/**
 * Maximum number of waiting searches; each takes a few milliseconds, so that the last one waits
 * about a second.
 */
const WAITING = { each: 100, all: 1_000 } as const;

/**
 * Memory limits of a thread. A search needs some thousand rows and one page; a thread that takes
 * more ends, and another starts.
 */
const MEMORY = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 128 } as const;

/** Elements of the array that the main thread shares with a search thread. */
export const SHARED = {
  /** Number of a cancelled request. */
  cancelled: 0,
  /** 1 while others wait for the thread. */
  crowded: 1,
} as const;

/** The start parameters of the thread. */
export interface SearchThreadData {
  readonly file: string;
  /** Time limit of a search. */
  readonly limitMs: number;
  /** Time limit while others wait; unlimited without. */
  readonly crowdedMs: number | undefined;
  /** Array with the elements of {@link SHARED}. */
  readonly shared: Int32Array;
}

export interface SearchOrder {
  readonly number: number;
  readonly name: SearchName;
  readonly scope: Scope;
  readonly parameters: SearchParameters<SearchName>;
}

export type SearchReply = { readonly number: number } & (
  | { readonly result: unknown }
  | { readonly ended: "late" | "cancelled" | "crowded" }
  /** The error with its stack, for the log. */
  | { readonly failure: string }
);

interface Waiting {
  readonly owner: SearchOwner;
  readonly order: SearchOrder;
  readonly resolve: (result: never) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Searches on threads with a connection of their own. They run one at a time in a first thread; a
 * search that takes longer while others wait moves to a second one, and starts again there. So the
 * short searches of all callers never wait for a long one. A thread starts with its first search
 * and again after its death, and does not keep the process alive.
 */
export class Searches {
  readonly #first: Lane;
  #number = 0;
  readonly #long: Lane;
  #closed = false;

  /**
   * Creates the searches of a database file.
   * @param limitMs for tests
   * @param crowdedMs for tests
   */
  constructor(file: string, limitMs = LIMIT_MS, crowdedMs = CROWDED_MS) {
    this.#long = new Lane({ file, limitMs, crowdedMs: undefined });
    this.#first = new Lane({ file, limitMs, crowdedMs }, this.#long);
  }

  /**
   * Runs one of SEARCHES on another thread, so that this one is not blocked. It sees the commits up
   * to its call. Organizations take turns, and in each its callers; a long search lets others go
   * first.
   * @throws DomainError VALUE_UNUSABLE when it takes too long; StoreUnavailable when too many wait;
   * the signal's reason once that is aborted
   */
  search<N extends SearchName>(
    name: N,
    { organizationId, subject }: Scope,
    parameters: SearchParameters<N>,
    signal?: AbortSignal,
  ): Promise<SearchResult<N>> {
    if (this.#closed) return Promise.reject(new StoreUnavailable("the store is closed"));
    if (signal?.aborted) return Promise.reject(signal.reason);
    const { promise, resolve, reject } = Promise.withResolvers<SearchResult<N>>();
    // Numbers restart before the range of the shared element ends.
    this.#number = (this.#number % 0x7fff_ffff) + 1;
    // A caller has more properties than its scope, and some of them cannot cross threads.
    const order = { number: this.#number, name, scope: { organizationId }, parameters };
    const owner = { organizationId, callerId: subject?.id ?? "" };
    const waiting: Waiting = { owner, order, resolve, reject };
    if (!this.#first.add(waiting)) {
      return Promise.reject(new StoreUnavailable("too many searches are waiting"));
    }
    const leave = () => {
      this.#first.remove(waiting);
      this.#long.remove(waiting);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", leave, { once: true });
    return promise.finally(() => signal?.removeEventListener("abort", leave));
  }

  /** Ends the running searches, and rejects those that wait or come later. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([this.#first.close(), this.#long.close()]);
  }
}

/** One thread, and its queue. */
class Lane {
  readonly #turns = new FairQueue<Waiting>(WAITING);
  readonly #shared = new Int32Array(new SharedArrayBuffer(8));
  readonly #data: SearchThreadData;
  /** Lane for searches that take too long here while others wait. */
  readonly #next: Lane | undefined;
  #thread: Worker | undefined;
  #running: Waiting | undefined;
  #closed = false;

  constructor(data: Omit<SearchThreadData, "shared">, next?: Lane) {
    this.#data = { ...data, shared: this.#shared };
    this.#next = next;
  }

  /**
   * Adds an element to the queue.
   * @returns false when too many wait already
   */
  add(waiting: Waiting): boolean {
    if (!this.#turns.add(waiting.owner, waiting)) return false;
    this.#go();
    return true;
  }

  /** Ends or removes a cancelled search, if it is here. */
  remove(waiting: Waiting): void {
    this.#turns.remove(waiting.owner, waiting);
    if (this.#running === waiting) Atomics.store(this.#shared, SHARED.cancelled, waiting.order.number);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (let waiting = this.#turns.next(); waiting; waiting = this.#turns.next()) {
      waiting.reject(new StoreUnavailable("the store is closed"));
    }
    const thread = this.#thread;
    if (!thread) return;
    if (this.#running) Atomics.store(this.#shared, SHARED.cancelled, this.#running.order.number);
    const { promise, resolve } = Promise.withResolvers<void>();
    thread.once("exit", () => resolve());
    // Keeps the process alive for this: the closing of a store waits for it.
    thread.ref();
    thread.postMessage("close");
    await promise;
  }

  #go(): void {
    if (!this.#running) this.#begin();
    Atomics.store(this.#shared, SHARED.crowded, this.#turns.size > 0 ? 1 : 0);
  }

  #begin(): void {
    const next = this.#turns.next();
    if (!next) return;
    this.#running = next;
    try {
      this.#thread ??= this.#start();
      this.#thread.postMessage(next.order);
    } catch (cause) {
      // The system cannot start a thread now; each waiting search tries once.
      this.#running = undefined;
      next.reject(new StoreUnavailable("there is no thread for searches", { cause }));
      this.#begin();
    }
  }

  #start(): Worker {
    const thread = new Worker(new URL("./search-worker.ts", import.meta.url), {
      workerData: this.#data,
      resourceLimits: MEMORY,
    });
    thread.unref();
    thread.on("message", (reply: SearchReply) => this.#settle(reply));
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

  #settle(reply: SearchReply): void {
    const done = this.#running;
    this.#running = undefined;
    if ("result" in reply) done?.resolve(reply.result as never);
    else if ("failure" in reply) done?.reject(new Error(`a search failed: ${reply.failure}`));
    else if (reply.ended === "late") done?.reject(new SearchTooLong(this.#data.limitMs));
    else if (reply.ended === "cancelled" || this.#closed) {
      done?.reject(new StoreUnavailable("the store is closed"));
    } else if (done && !this.#next?.add(done)) {
      done.reject(new StoreUnavailable("too many searches that take long are waiting"));
    }
    this.#go();
  }
}
