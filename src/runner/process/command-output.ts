import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";

export type OutputStream = "stdout" | "stderr";

/** Receives the output of a program; the program waits while a promise that it returns is pending. */
export type OnOutput = (bytes: Buffer, stream: OutputStream) => void | Promise<void>;

/**
 * Time for which both pipes must be silent, with every process of the group gone,
 * before the reading ends: a process that left the group holds them open.
 */
const SILENCE_MS = 500;

/** Reads the output of a program. */
export class CommandOutput {
  /** Settles at the end of both streams; rejects with what `onOutput` threw. */
  readonly done: Promise<unknown>;
  readonly #streams: readonly Readable[];
  readonly #stored: Buffer[] = [];
  #remainingBytes: number;
  #truncated = false;
  #readBytes = 0;
  #pending = 0;

  /** @param keepBytes number of bytes of stdout that are stored */
  constructor(stdout: Readable, stderr: Readable, keepBytes: number, onOutput: OnOutput | undefined) {
    this.#streams = [stdout, stderr];
    this.#remainingBytes = keepBytes;
    this.done = Promise.all([this.#read(stdout, "stdout", onOutput), this.#read(stderr, "stderr", onOutput)]);
    // Failures are reported to the caller that awaits them; until then they must not be unhandled rejections.
    this.done.catch(() => undefined);
  }

  /** Returns the stored bytes of stdout. */
  get stdout(): Buffer {
    return Buffer.concat(this.#stored);
  }

  /** Returns whether there was more. */
  get truncated(): boolean {
    return this.#truncated;
  }

  /**
   * Reads to the end, once no process of the group is left. A process that left
   * the group may hold the pipes open forever, so silence ends the reading too,
   * and so does `signal`.
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
        if (name === "stdout") this.#storeBytes(bytes);
        this.#pending++;
        await onOutput?.(bytes, name);
        this.#pending--;
      }
    } catch (error) {
      // The reading was ended by this class.
      if ((error as NodeJS.ErrnoException).code !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
    }
  }

  #storeBytes(bytes: Buffer): void {
    const stored = bytes.subarray(0, this.#remainingBytes);
    if (stored.length > 0) this.#stored.push(stored);
    this.#remainingBytes -= stored.length;
    if (stored.length < bytes.length) this.#truncated = true;
  }
}

async function silence(signal: AbortSignal | undefined): Promise<void> {
  await delay(SILENCE_MS, undefined, { ref: false, ...(signal && { signal }) }).catch(() => undefined);
}
