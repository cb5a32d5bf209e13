import type { CallerOutput, ResponseOutput } from "./output-account.ts";

/**
 * Calls of one caller to one operation without side effects that may produce
 * their responses at the same time. Production waits for nothing but searches,
 * which have one thread; so many full pages may exceed a caller's limit for each
 * operation.
 */
export const READS_PER_CALLER = 4;

interface WaitingCall {
  readonly caller: CallerOutput;
  readonly read: string | undefined;
  /** On the clock of the budget, in milliseconds. */
  readonly since: number;
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
   * @param timeMs on the clock of the budget
   */
  enter(
    output: ResponseOutput,
    caller: CallerOutput,
    read: string | undefined,
    timeMs: number,
  ): Promise<void> | undefined {
    // No call overtakes another one of the same caller; where these are blocked, the next turn admits it.
    if (caller.waiting === 0 && this.#begin(output, caller, read)) return undefined;
    caller.waiting++;
    return new Promise((proceed) => {
      this.#waiting.set(output, { caller, read, since: timeMs, proceed });
      this.released();
    });
  }

  leave(output: ResponseOutput): void {
    const call = this.#waiting.get(output);
    if (!call) return;
    this.#waiting.delete(output);
    call.caller.waiting--;
    call.proceed();
  }

  /** Releases the slot of a read whose response was produced, or never will be. */
  endRead(output: ResponseOutput): void {
    const { caller, read } = output;
    if (!caller || read === undefined) return;
    output.read = undefined;
    caller.reads.set(read, (caller.reads.get(read) ?? 0) - 1);
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

  /** Yields the callers with a call that has waited since a time or longer. */
  *waitingSince(timeMs: number): Generator<CallerOutput> {
    for (const { caller, since } of this.#waiting.values()) if (since <= timeMs) yield caller;
  }

  /**
   * Admits the waiting calls that fit; one read of each caller, so that others
   * are answered between large pages.
   */
  #admit(): void {
    const readers = new Set<CallerOutput>();
    for (const [output, { caller, read }] of this.#waiting) {
      if (read !== undefined && readers.has(caller)) {
        this.released();
      } else if (this.#begin(output, caller, read)) {
        if (read !== undefined) readers.add(caller);
        this.leave(output);
      }
    }
  }

  #begin(output: ResponseOutput, caller: CallerOutput, read: string | undefined): boolean {
    if (!this.#hasRoom(output, caller)) return false;
    if (read === undefined) return true;
    const reads = caller.reads.get(read) ?? 0;
    if (reads >= READS_PER_CALLER) return false;
    caller.reads.set(read, reads + 1);
    output.read = read;
    return true;
  }
}
