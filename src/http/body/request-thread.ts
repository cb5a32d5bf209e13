import { Worker } from "node:worker_threads";
import { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { writeConnectError } from "../../rpc/error/error.ts";
import type { ParseElsewhere } from "../../rpc/request/parsed-request.ts";
import { bodyAborted } from "../../rpc/request/request-failure.ts";
import { receiveRequest, type TransferredRequest } from "../../rpc/request/request-transfer.ts";

interface Waiting<T> {
  readonly bytes: number;
  readonly item: T;
}

/**
 * A queue of requests for a thread that alternates between callers, and takes the
 * smallest request of each first.
 */
export class ReadQueue<T> {
  /** The waiting items by caller, in the order of the callers' turns; no list is empty. */
  readonly #callers = new Map<string, Waiting<T>[]>();

  /** Adds an item; returns a function that removes it, unless it was taken already. */
  add(caller: string, bytes: number, item: T): () => void {
    const waiting = this.#callers.get(caller) ?? [];
    const own = { bytes, item };
    const larger = waiting.findIndex((each) => each.bytes > bytes);
    waiting.splice(larger === -1 ? waiting.length : larger, 0, own);
    this.#callers.set(caller, waiting);
    return () => {
      const at = waiting.indexOf(own);
      if (at !== -1) waiting.splice(at, 1);
      if (waiting.length === 0 && this.#callers.get(caller) === waiting) this.#callers.delete(caller);
    };
  }

  /** Removes and returns the next item; undefined when the queue is empty. */
  next(): T | undefined {
    const [first] = this.#callers;
    if (!first) return undefined;
    const [caller, waiting] = first;
    const next = waiting.shift();
    // The caller goes to the end of the queue.
    this.#callers.delete(caller);
    if (waiting.length > 0) this.#callers.set(caller, waiting);
    return next?.item;
  }
}

/** The data that the thread starts with. */
export interface RequestThreadData {
  readonly allowUnknownFields: boolean;
}

export interface ReadOrder {
  readonly operation: string;
  readonly isBinary: boolean;
  readonly bytes: Uint8Array;
}

export type ReadOutcome = TransferredRequest | { /** The cause, for the log. */ readonly failure: string };

/**
 * Memory of the thread: enough for the parsed form of 16 MiB of JSON, with a
 * margin; images do not count. A thread that needs more is terminated.
 */
const MEMORY = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 256 } as const;

/**
 * The thread is terminated when a request takes longer. For comparison: ten images
 * of 4 MiB took a second before the text was read as ASCII.
 */
const LIMIT_MS = 30_000;

/** An idle thread is ended after this time, which frees its memory. */
const IDLE_MS = 10_000;

/**
 * Parses and checks large requests off the main thread, one at a time,
 * alternating between their callers. Requests that nobody waits for any more are
 * skipped. The thread starts with the first one, ends after an idle time, and
 * does not keep the process alive.
 */
export class RequestThread {
  readonly #allowUnknownFields: boolean;
  #thread: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;
  readonly #waiting = new ReadQueue<() => Promise<void>>();
  #isReading = false;

  constructor(allowUnknownFields: boolean) {
    this.#allowUnknownFields = allowUnknownFields;
  }

  readonly parse: ParseElsewhere = async (reading, isBinary, bytes, { caller, signal }) => {
    const order: ReadOrder = { operation: reading.operation, isBinary, bytes };
    const { promise, resolve, reject } = Promise.withResolvers<ReadOutcome>();
    const leave = this.#waiting.add(caller, bytes.length, () => this.#read(order).then(resolve, reject));
    const drop = () => {
      leave();
      reject(signal.reason instanceof ConnectError ? signal.reason : bodyAborted());
    };
    if (signal.aborted) drop();
    signal.addEventListener("abort", drop, { once: true });
    void this.#readAll();
    try {
      const read = await promise;
      if ("failure" in read) throw new Error(`a request was not read: ${read.failure}`);
      return receiveRequest(reading.input, read);
    } finally {
      signal.removeEventListener("abort", drop);
    }
  };

  async #readAll(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    for (let next = this.#waiting.next(); next; next = this.#waiting.next()) await next();
    this.#isReading = false;
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle);
    await this.#end();
  }

  /** Ends the running thread; the next request starts another. */
  async #end(): Promise<void> {
    const thread = this.#thread;
    this.#thread = undefined;
    await thread?.terminate();
  }

  async #read(order: ReadOrder): Promise<ReadOutcome> {
    clearTimeout(this.#idle);
    this.#thread ??= this.#start();
    const thread = this.#thread;
    const { promise, resolve, reject } = Promise.withResolvers<ReadOutcome>();
    const ended = () => reject(threadEnded());
    const timer = setTimeout(() => void this.#end(), LIMIT_MS);
    thread.once("message", resolve);
    thread.once("exit", ended);
    try {
      // Only a whole ArrayBuffer can be transferred, so a view of a part of one is copied.
      // Buffer.slice would return another view.
      const isWhole = order.bytes.byteLength === order.bytes.buffer.byteLength;
      const bytes = isWhole ? order.bytes : new Uint8Array(order.bytes);
      thread.postMessage({ ...order, bytes }, [bytes.buffer as ArrayBuffer]);
      return await promise;
    } finally {
      clearTimeout(timer);
      thread.off("message", resolve).off("exit", ended);
      this.#idle = setTimeout(() => void this.#end(), IDLE_MS).unref();
    }
  }

  #start(): Worker {
    const workerData: RequestThreadData = { allowUnknownFields: this.#allowUnknownFields };
    const thread = new Worker(new URL("./request-worker.ts", import.meta.url), {
      workerData,
      resourceLimits: MEMORY,
    });
    thread.unref();
    // The error is reported to the request that the thread was reading.
    thread.on("error", () => {});
    thread.once("exit", () => {
      if (this.#thread === thread) this.#thread = undefined;
    });
    return thread;
  }
}

function threadEnded() {
  return writeConnectError(
    ErrorReason.UNAVAILABLE,
    "the server could not read the request: send it again later, or in parts",
  );
}
