import { Worker } from "node:worker_threads";
import { SearchTooLong } from "../../../domain/error.ts";
import type { SearchName, SearchParameters, SearchResult } from "../../search.ts";
import { type Scope, StoreUnavailable } from "../../store.ts";
import { type Owner, Turns } from "./search-turns.ts";

/** How long one search may take; a test of every row of a million takes about half of it. */
const LIMIT_MS = 2_000;

/**
 * How long a search goes on while others wait. Nearly all take less; the others
 * of an organization, and those of others, wait no longer for it.
 */
const CROWDED_MS = 25;

/** Searches that wait; a few milliseconds each, so that the last one waits about a second. */
const WAITING = { each: 100, all: 1_000 } as const;

/** A search keeps some thousand rows and one page; a thread that takes more ends, and another starts. */
const MEMORY = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 128 } as const;

/** Elements that the thread and who gives it orders share. */
export const SHARED = {
  /** Number of an order that nobody waits for any more. */
  cancelled: 0,
  /** 1 while others wait for the thread. */
  crowded: 1,
} as const;

/** What the thread starts with. */
export interface SearchThreadData {
  readonly file: string;
  /** How long a search may take. */
  readonly limitMs: number;
  /** How long it may go on while others wait; unlimited without. */
  readonly crowdedMs: number | undefined;
  /** As of {@link SHARED}. */
  readonly shared: Int32Array;
}

export interface SearchOrder {
  readonly number: number;
  readonly name: SearchName;
  readonly scope: Scope;
  readonly parameters: SearchParameters<SearchName>;
}

export type SearchAnswer = { readonly number: number } & (
  | { readonly result: unknown }
  | { readonly ended: "late" | "cancelled" | "crowded" }
  /** What went wrong, with its place, for the log. */
  | { readonly failure: string }
);

interface Waiting {
  readonly owner: Owner;
  readonly order: SearchOrder;
  readonly resolve: (result: never) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Searches beside the main thread, each on a connection of its own: one at a
 * time in a first thread, from which a search that takes longer while others
 * wait moves to a second one, and begins there anew. So the short ones of
 * everybody wait for no long one of anybody. A thread starts with its first
 * search and anew after its death, and keeps no process alive.
 */
export class Searches {
  readonly #first: Lane;
  #number = 0;
  readonly #long: Lane;
  #closed = false;

  /**
   * @param limitMs for tests
   * @param crowdedMs for tests
   */
  constructor(file: string, limitMs = LIMIT_MS, crowdedMs = CROWDED_MS) {
    this.#long = new Lane({ file, limitMs, crowdedMs: undefined });
    this.#first = new Lane({ file, limitMs, crowdedMs }, this.#long);
  }

  /** As Store.search says. */
  search<N extends SearchName>(
    name: N,
    { organizationId, subject }: Scope,
    parameters: SearchParameters<N>,
    signal?: AbortSignal,
  ): Promise<SearchResult<N>> {
    if (this.#closed) return Promise.reject(new StoreUnavailable("the store is closed"));
    if (signal?.aborted) return Promise.reject(signal.reason);
    const { promise, resolve, reject } = Promise.withResolvers<SearchResult<N>>();
    // Numbers begin anew before the shared element's own range ends.
    this.#number = (this.#number % 0x7fff_ffff) + 1;
    // A caller has more about it than its scope, and some of that cannot cross.
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

  /** Ends the searches under way, refuses what waits and what comes. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([this.#first.close(), this.#long.close()]);
  }
}

/** One thread, and what waits for it. */
class Lane {
  readonly #turns = new Turns<Waiting>(WAITING);
  readonly #shared = new Int32Array(new SharedArrayBuffer(8));
  readonly #data: SearchThreadData;
  /** Takes what takes too long here while others wait. */
  readonly #next: Lane | undefined;
  #thread: Worker | undefined;
  #running: Waiting | undefined;
  #closed = false;

  constructor(data: Omit<SearchThreadData, "shared">, next?: Lane) {
    this.#data = { ...data, shared: this.#shared };
    this.#next = next;
  }

  /** @returns false when too much waits already */
  add(waiting: Waiting): boolean {
    if (!this.#turns.add(waiting.owner, waiting)) return false;
    this.#go();
    return true;
  }

  /** Ends a search that nobody waits for any more, if it is here. */
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
    // Kept alive for this: who closes a store waits for it.
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
      // The system gives no thread now; each that waits tries once.
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
    if ("result" in answer) done?.resolve(answer.result as never);
    else if ("failure" in answer) done?.reject(new Error(`a search failed: ${answer.failure}`));
    else if (answer.ended === "late") done?.reject(new SearchTooLong(this.#data.limitMs));
    else if (answer.ended === "cancelled" || this.#closed) {
      done?.reject(new StoreUnavailable("the store is closed"));
    } else if (done && !this.#next?.add(done)) {
      done.reject(new StoreUnavailable("too many searches that take long are waiting"));
    }
    this.#go();
  }
}
