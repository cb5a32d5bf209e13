import type { AnswerOutput, CallerOutput } from "./output-account.ts";

/**
 * Calls of one caller to one operation without side effects that produce their
 * answers at the same time. Production waits for nothing but searches, which
 * have one thread; so many full pages are what a caller can have of each
 * operation on top of its limit.
 */
export const READS_PER_CALLER = 4;

interface WaitingCall {
  readonly caller: CallerOutput;
  readonly read: string | undefined;
  /** By the clock of the budget, in milliseconds. */
  readonly since: number;
  readonly proceed: () => void;
}

/**
 * Decides which calls may produce their answers now. The others wait in one
 * list in order of arrival; whatever is released or ends, all of them are tried
 * again in a turn of the event loop of their own.
 */
export class OutputAdmission {
  /** Whether the limits leave room for another answer. */
  readonly #hasRoom: (output: AnswerOutput, caller: CallerOutput) => boolean;
  readonly #waiting = new Map<AnswerOutput, WaitingCall>();
  #isTurnAwaited = false;

  constructor(hasRoom: (output: AnswerOutput, caller: CallerOutput) => boolean) {
    this.#hasRoom = hasRoom;
  }

  /** @param timeMs by the clock of the budget */
  enter(
    output: AnswerOutput,
    caller: CallerOutput,
    read: string | undefined,
    timeMs: number,
  ): Promise<void> | undefined {
    // No call overtakes those of the same caller; where these have no room, the next turn lets it go on.
    if (caller.waiting === 0 && this.#begin(output, caller, read)) return undefined;
    caller.waiting++;
    return new Promise((proceed) => {
      this.#waiting.set(output, { caller, read, since: timeMs, proceed });
      this.released();
    });
  }

  leave(output: AnswerOutput): void {
    const call = this.#waiting.get(output);
    if (!call) return;
    this.#waiting.delete(output);
    call.caller.waiting--;
    call.proceed();
  }

  /** Gives back the place of a read whose answer was produced, or never will be. */
  endRead(output: AnswerOutput): void {
    const { caller, read } = output;
    if (!caller || read === undefined) return;
    output.read = undefined;
    caller.reads.set(read, (caller.reads.get(read) ?? 0) - 1);
    this.released();
  }

  /** Tries all that wait, soon. */
  released(): void {
    if (this.#waiting.size === 0 || this.#isTurnAwaited) return;
    this.#isTurnAwaited = true;
    setImmediate(() => {
      this.#isTurnAwaited = false;
      this.#admit();
    });
  }

  /** Yields the callers of which a call has waited since a time or longer. */
  *waitingSince(timeMs: number): Generator<CallerOutput> {
    for (const { caller, since } of this.#waiting.values()) if (since <= timeMs) yield caller;
  }

  /** Lets calls go on that have room; reads one of each caller, so that others are answered between large pages. */
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

  #begin(output: AnswerOutput, caller: CallerOutput, read: string | undefined): boolean {
    if (!this.#hasRoom(output, caller)) return false;
    if (read === undefined) return true;
    const reads = caller.reads.get(read) ?? 0;
    if (reads >= READS_PER_CALLER) return false;
    caller.reads.set(read, reads + 1);
    output.read = read;
    return true;
  }
}
