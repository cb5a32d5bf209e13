import { CallerReads, PAGE_BYTES } from "./caller-reads.ts";
import type { CallerOutput, ResponseOutput } from "./output-account.ts";

interface WaitingCall {
  readonly caller: CallerOutput;
  /** Bytes that it may produce in the turn in which it is admitted; 0 unless it is a read. */
  readonly turnBytes: number;
  /** Since when it waits, on the clock of the budget, in milliseconds. */
  readonly since: number;
  /** Tries to admit the call, and returns whether it was admitted. */
  readonly begin: () => boolean;
  readonly proceed: () => void;
}

/**
 * Decides which calls may produce their responses now. The others wait in one
 * list in order of arrival; whenever anything is released or ends, all of them
 * are tried again in a separate turn of the event loop.
 */
export class OutputAdmission {
  /** Returns whether the limits allow another response. */
  readonly #hasRoom: (output: ResponseOutput, caller: CallerOutput) => boolean;
  readonly #waiting = new Map<ResponseOutput, WaitingCall>();
  #isTurnAwaited = false;

  constructor(hasRoom: (output: ResponseOutput, caller: CallerOutput) => boolean) {
    this.#hasRoom = hasRoom;
  }

  /**
   * Admits a call, or returns a promise that resolves when it is admitted.
   * @param shortBytes for a read: maximum bytes that it holds before it calls {@link enlarge}
   * @param timeMs on the clock of the budget
   */
  enter(
    output: ResponseOutput,
    caller: CallerOutput,
    read: string | undefined,
    shortBytes: number | undefined,
    timeMs: number,
  ): Promise<void> | undefined {
    // No call overtakes another one of the same caller. If those are blocked, the next turn may admit this one.
    if (caller.waiting === 0 && this.#begin(output, caller, read, shortBytes)) return undefined;
    const turnBytes = read === undefined ? 0 : (shortBytes ?? PAGE_BYTES);
    return this.#wait(output, caller, turnBytes, timeMs, () => this.#begin(output, caller, read, shortBytes));
  }

  /**
   * Allows a read of short texts to grow to a full page, or returns a promise that
   * resolves when it may.
   * @param timeMs on the clock of the budget
   */
  enlarge(output: ResponseOutput, caller: CallerOutput, timeMs: number): Promise<void> | undefined {
    if (this.#enlarge(output, caller)) return undefined;
    return this.#wait(output, caller, PAGE_BYTES, timeMs, () => this.#enlarge(output, caller));
  }

  leave(output: ResponseOutput): void {
    const call = this.#waiting.get(output);
    if (!call) return;
    this.#waiting.delete(output);
    call.caller.waiting--;
    call.proceed();
  }

  /** Releases the slot of a read whose response was produced or was given up. */
  endRead(output: ResponseOutput): void {
    const { caller, read, shortBytes, isFullPage } = output;
    if (!caller || read === undefined) return;
    output.read = undefined;
    caller.reads.get(read)?.end(shortBytes, isFullPage);
    this.released();
  }

  /** Tries all waiting calls, soon. */
  released(): void {
    if (this.#waiting.size === 0 || this.#isTurnAwaited) return;
    this.#isTurnAwaited = true;
    setImmediate(() => {
      this.#isTurnAwaited = false;
      this.#admit();
    });
  }

  /** Yields the callers with a call that has been waiting since this time or longer. */
  *waitingSince(timeMs: number): Generator<CallerOutput> {
    for (const { caller, since } of this.#waiting.values()) if (since <= timeMs) yield caller;
  }

  /**
   * Admits the waiting calls that fit. In one turn each caller gets one full page,
   * or reads of short texts of that size in all, so that other callers are answered
   * between large pages.
   */
  #admit(): void {
    const readBytes = new Map<CallerOutput, number>();
    for (const [output, { caller, turnBytes, begin }] of this.#waiting) {
      const bytes = turnBytes + (readBytes.get(caller) ?? 0);
      if (turnBytes > 0 && bytes > PAGE_BYTES && readBytes.has(caller)) {
        this.released();
      } else if (begin()) {
        if (turnBytes > 0) readBytes.set(caller, bytes);
        this.leave(output);
      }
    }
  }

  #wait(
    output: ResponseOutput,
    caller: CallerOutput,
    turnBytes: number,
    since: number,
    begin: () => boolean,
  ): Promise<void> {
    caller.waiting++;
    return new Promise((proceed) => {
      this.#waiting.set(output, { caller, turnBytes, since, begin, proceed });
      this.released();
    });
  }

  #begin(
    output: ResponseOutput,
    caller: CallerOutput,
    read: string | undefined,
    shortBytes: number | undefined,
  ): boolean {
    if (!this.#hasRoom(output, caller)) return false;
    if (read === undefined) return true;
    let reads = caller.reads.get(read);
    if (!reads) {
      reads = new CallerReads();
      caller.reads.set(read, reads);
    }
    if (!reads.begin(shortBytes)) return false;
    output.read = read;
    output.shortBytes = shortBytes;
    output.isFullPage = shortBytes === undefined;
    return true;
  }

  #enlarge(output: ResponseOutput, caller: CallerOutput): boolean {
    const { read, isFullPage } = output;
    if (read === undefined || isFullPage) return true;
    if (!this.#hasRoom(output, caller) || !caller.reads.get(read)?.beginFull()) return false;
    output.isFullPage = true;
    return true;
  }
}
