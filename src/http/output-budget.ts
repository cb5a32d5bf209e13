import {
  AnswerOutput,
  type CallerOutput,
  type ConnectionOutput,
  type Cut,
  type Output,
} from "./output-account.ts";
import type { OutputLimits } from "./output-limits.ts";

/** Why a reader was cut. */
export interface SlowReader {
  readonly reason: "stalled" | "caller" | "total";
  /** Undefined before a token was accepted. */
  readonly callerKey: string | undefined;
  /** What its connection held, in bytes. */
  readonly heldBytes: number;
}

/**
 * Calls of one caller to one operation without side effects that produce their
 * answers at the same time. Production waits for nothing but searches, which
 * have one thread; so many full pages are what a caller can have of each
 * operation on top of its limit.
 */
export const READS_PER_CALLER = 4;

/** What may be produced in one turn of the event loop before the next call goes on. */
const TURN_BYTES = 262_144;

/** A connection gets this long before it can be the slowest of all: nobody's rate is known earlier. */
const MEASURED_MS = 1_000;

/** How long a call waits for its caller's other connections before the slowest of them is closed. */
const CALLER_WAIT_MS = 10_000;

/**
 * Bounds what waits for slow readers: per connection, per caller and in all.
 * Beyond a limit further calls wait before they read anything; who takes
 * nothing is cut, and so is the slowest when everything is full.
 */
export interface OutputBudget {
  /**
   * Starts the account of one answer. To be ended when the response closes.
   *
   * @param connection one object for each connection, the same for all answers on it
   */
  open(connection: object, cut: Cut): Output;
  /** Ends all accounts of a connection that has closed. */
  close(connection: object): void;
  /**
   * Lets time pass and cuts who is too slow; to be called at short intervals.
   * Time in which the server stood still is not counted.
   */
  pass(elapsedMs: number): void;
  /** Bytes held in all. */
  readonly heldBytes: number;
}

export function createOutputBudget(limits: OutputLimits, onCut: (reader: SlowReader) => void): OutputBudget {
  return new Budget(limits, onCut);
}

export class Budget implements OutputBudget {
  readonly limits: OutputLimits;
  readonly #onCut: (reader: SlowReader) => void;
  readonly #connections = new Map<object, ConnectionOutput>();
  readonly #callers = new Map<string, CallerOutput>();
  heldBytes = 0;
  /** Moves on only with {@link pass}. */
  timeMs = 0;
  /** Produced since calls were last let go on in a turn of their own. */
  #turnBytes = 0;
  #isTurnAwaited = false;

  constructor(limits: OutputLimits, onCut: (reader: SlowReader) => void) {
    this.limits = limits;
    this.#onCut = onCut;
  }

  open(key: object, cut: Cut): AnswerOutput {
    let connection = this.#connections.get(key);
    if (!connection) {
      const { timeMs } = this;
      connection = {
        key,
        outputs: new Set(),
        heldBytes: 0,
        takenBytes: 0,
        heldSince: timeMs,
        progressAt: timeMs,
      };
      this.#connections.set(key, connection);
    }
    const answer = new AnswerOutput(this, connection, cut);
    connection.outputs.add(answer);
    return answer;
  }

  close(key: object): void {
    for (const answer of this.#connections.get(key)?.outputs ?? []) answer.end();
  }

  pass(elapsedMs: number): void {
    this.timeMs += elapsedMs;
    for (const connection of this.#connections.values()) {
      for (const answer of connection.outputs) {
        if (answer.isStalled()) this.#cut(answer, "stalled", () => answer.cut.answer());
      }
    }
    for (const caller of this.#callers.values()) {
      const [first] = caller.waiting;
      const hasWaited = first && this.timeMs - first.waitingSince >= CALLER_WAIT_MS;
      if (hasWaited && caller.heldBytes >= this.limits.callerBytes) this.#cutSlowest("caller", caller);
    }
    this.relieve();
  }

  /** Closes the slowest connections until the total is kept, as far as any is known to be slow. */
  relieve(): void {
    while (this.heldBytes >= this.limits.totalBytes) if (!this.#cutSlowest("total")) return;
  }

  hasRoom(connection: ConnectionOutput, caller: CallerOutput, read: string | undefined): boolean {
    const { connectionBytes, callerBytes, totalBytes } = this.limits;
    return (
      (read === undefined || (caller.reads.get(read) ?? 0) < READS_PER_CALLER) &&
      connection.heldBytes < connectionBytes &&
      caller.heldBytes < callerBytes &&
      this.heldBytes < totalBytes
    );
  }

  callerOf(key: string): CallerOutput {
    let caller = this.#callers.get(key);
    if (!caller) {
      caller = { key, calls: 0, reads: new Map(), heldBytes: 0, waiting: new Set() };
      this.#callers.set(key, caller);
    }
    return caller;
  }

  /** Counts what this turn of the event loop produced. */
  produced(bytes: number): void {
    this.#turnBytes += bytes;
  }

  /** Lets calls go on for which there is room again: at once while the answers of this turn are small. */
  admit(caller: CallerOutput | undefined, wasFull: boolean): void {
    if (this.#turnBytes >= TURN_BYTES) this.#admitLater();
    else if (wasFull) for (const each of this.#callers.values()) this.#admit(each);
    else if (caller) this.#admit(caller);
  }

  left(connection: ConnectionOutput, caller: CallerOutput | undefined): void {
    if (connection.outputs.size === 0) this.#connections.delete(connection.key);
    if (caller && --caller.calls === 0) this.#callers.delete(caller.key);
  }

  /** In a turn of its own, so that what came in meanwhile is looked at between large answers. */
  #admitLater(): void {
    if (this.#isTurnAwaited) return;
    this.#isTurnAwaited = true;
    setImmediate(() => {
      this.#isTurnAwaited = false;
      this.#turnBytes = 0;
      // One of each caller; the end of its production lets the next one go on.
      for (const { waiting } of this.#callers.values()) {
        for (const answer of waiting) if (answer.tryEnter()) break;
      }
    });
  }

  #admit(caller: CallerOutput): void {
    for (const answer of caller.waiting) {
      if (this.heldBytes >= this.limits.totalBytes || caller.heldBytes >= this.limits.callerBytes) return;
      answer.tryEnter();
    }
  }

  /** @returns whether there was one */
  #cutSlowest(reason: "caller" | "total", of?: CallerOutput): boolean {
    let slowest: AnswerOutput | undefined;
    let slowestRate = Number.POSITIVE_INFINITY;
    for (const { outputs, heldBytes, heldSince, takenBytes } of this.#connections.values()) {
      const measuredMs = this.timeMs - heldSince;
      if (heldBytes === 0 || measuredMs < MEASURED_MS) continue;
      const rate = takenBytes / measuredMs;
      const holding = [...outputs].find((answer) => answer.heldBytes > 0 && (!of || answer.caller === of));
      if (!holding || rate >= slowestRate) continue;
      slowest = holding;
      slowestRate = rate;
    }
    if (slowest) this.#cut(slowest, reason, slowest.cut.connection, slowest.connection);
    return slowest !== undefined;
  }

  #cut(answer: AnswerOutput, reason: SlowReader["reason"], cut: () => void, whole?: ConnectionOutput): void {
    const { caller, connection } = answer;
    this.#onCut({ reason, callerKey: caller?.key, heldBytes: connection.heldBytes });
    for (const each of whole ? [...whole.outputs] : [answer]) each.end();
    cut();
  }
}
