import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";

export type OutputStream = "stdout" | "stderr";

/** Gets what a program writes; the program waits while a promise of it is pending. */
export type OnOutput = (bytes: Buffer, stream: OutputStream) => void | Promise<void>;

/** How long both pipes must be silent, with every process of the group gone, to be held open by a stranger. */
const SILENCE_MS = 500;

/** Reads what a program writes. */
export class CommandOutput {
  /** Settles at the end of both streams; rejects with what `onOutput` threw. */
  readonly done: Promise<unknown>;
  readonly #streams: readonly Readable[];
  readonly #kept: Buffer[] = [];
  #roomBytes: number;
  #truncated = false;
  #readBytes = 0;
  #pending = 0;

  /** @param keepBytes how much of stdout is kept */
  constructor(stdout: Readable, stderr: Readable, keepBytes: number, onOutput: OnOutput | undefined) {
    this.#streams = [stdout, stderr];
    this.#roomBytes = keepBytes;
    this.done = Promise.all([this.#read(stdout, "stdout", onOutput), this.#read(stderr, "stderr", onOutput)]);
    // Whoever waits for it learns of a failure; that nobody does yet is no fault.
    this.done.catch(() => undefined);
  }

  /** What was kept of stdout. */
  get stdout(): Buffer {
    return Buffer.concat(this.#kept);
  }

  /** Whether there was more. */
  get truncated(): boolean {
    return this.#truncated;
  }

  /**
   * Reads to the end, once no process of the group is left. Whoever left the
   * group may hold the pipes open for ever: silence ends the reading too, and so
   * does `signal`.
   */
  async drain(signal: AbortSignal | undefined): Promise<void> {
    let isDone = false;
    const end = () => {
      isDone = true;
    };
    const settled = this.done.then(end, end);
    for (let before = -1; !isDone && !signal?.aborted; before = this.#readBytes) {
      if (before === this.#readBytes && this.#pending === 0) break;
      await Promise.race([settled, silence(signal)]);
    }
    for (const stream of this.#streams) stream.destroy();
    if (!signal?.aborted) await this.done;
  }

  async #read(stream: Readable, name: OutputStream, onOutput: OnOutput | undefined): Promise<void> {
    try {
      for await (const bytes of stream as AsyncIterable<Buffer>) {
        this.#readBytes += bytes.length;
        if (name === "stdout") this.#keep(bytes);
        this.#pending++;
        await onOutput?.(bytes, name);
        this.#pending--;
      }
    } catch (error) {
      // The reading was ended from here.
      if ((error as NodeJS.ErrnoException).code !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
    }
  }

  #keep(bytes: Buffer): void {
    const kept = bytes.subarray(0, this.#roomBytes);
    if (kept.length > 0) this.#kept.push(kept);
    this.#roomBytes -= kept.length;
    if (kept.length < bytes.length) this.#truncated = true;
  }
}

async function silence(signal: AbortSignal | undefined): Promise<void> {
  await delay(SILENCE_MS, undefined, { ref: false, ...(signal && { signal }) }).catch(() => undefined);
}
