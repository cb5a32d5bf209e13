import type { OutputAccount } from "../rpc/call-record.ts";
import type { Budget } from "./output-budget.ts";

/** How the budget ends what it has to. */
export interface Cut {
  /** Ends this answer; on HTTP/1 its connection with it. */
  answer(): void;
  /** Ends the connection. */
  connection(): void;
  /** Whether answers of this connection progress independently of one another, as those of HTTP/2 do. */
  readonly isMultiplexed: boolean;
}

/** The account of one answer. */
export interface Output extends OutputAccount {
  /** Whether the account goes on. */
  readonly isOpen: boolean;
  /** Releases everything that it holds. */
  end(): void;
}

/** One connection and the answers on it. */
export interface ConnectionOutput {
  readonly key: object;
  readonly outputs: Set<AnswerOutput>;
  heldBytes: number;
  takenBytes: number;
  /** Since when it holds anything. */
  heldSince: number;
  progressAt: number;
}

/** One caller, while it has calls. */
export interface CallerOutput {
  readonly key: string;
  calls: number;
  /** By operation: those of its calls without side effects that produce their answers. */
  readonly reads: Map<string, number>;
  heldBytes: number;
  readonly waiting: Set<AnswerOutput>;
}

/** One for each request, so it has fields and no closures. */
export class AnswerOutput implements Output {
  readonly connection: ConnectionOutput;
  readonly cut: Cut;
  readonly #budget: Budget;
  caller: CallerOutput | undefined;
  heldBytes = 0;
  waitingSince = 0;
  isOpen = true;
  #progressAt = 0;
  #read: string | undefined;
  #isReading = false;
  #proceed: (() => void) | undefined;

  constructor(budget: Budget, connection: ConnectionOutput, cut: Cut) {
    this.#budget = budget;
    this.connection = connection;
    this.cut = cut;
  }

  enter(callerKey: string, read: string | undefined): Promise<void> | undefined {
    if (!this.isOpen) return undefined;
    this.caller = this.#budget.callerOf(callerKey);
    this.caller.calls++;
    this.#read = read;
    if (this.tryEnter()) return undefined;
    this.caller.waiting.add(this);
    this.waitingSince = this.#budget.timeMs;
    return new Promise((resolve) => {
      this.#proceed = resolve;
    });
  }

  tryEnter(): boolean {
    const { caller, connection } = this;
    if (!caller || !this.#budget.hasRoom(connection, caller, this.#read)) return false;
    caller.waiting.delete(this);
    if (this.#read !== undefined) {
      this.#isReading = true;
      caller.reads.set(this.#read, (caller.reads.get(this.#read) ?? 0) + 1);
    }
    this.#proceed?.();
    return true;
  }

  hold(bytes: number): void {
    if (!this.isOpen) return;
    const { connection } = this;
    const { timeMs } = this.#budget;
    if (this.heldBytes === 0) this.#progressAt = timeMs;
    if (connection.heldBytes === 0) {
      connection.heldSince = timeMs;
      connection.progressAt = timeMs;
      connection.takenBytes = 0;
    }
    this.#count(bytes);
    this.#budget.produced(bytes);
    const wasReading = this.#isReading;
    this.#endReading();
    this.#budget.relieve();
    if (wasReading && this.caller && this.caller.waiting.size > 0) this.#budget.admit(this.caller, false);
  }

  take(bytes: number): void {
    if (!this.isOpen) return;
    const { timeMs } = this.#budget;
    this.#progressAt = timeMs;
    this.connection.progressAt = timeMs;
    this.connection.takenBytes += bytes;
    this.#release(bytes);
  }

  end(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.connection.outputs.delete(this);
    this.caller?.waiting.delete(this);
    this.#endReading();
    this.#release(this.heldBytes);
    this.#budget.left(this.connection, this.caller);
    this.#proceed?.();
  }

  isStalled(): boolean {
    const since = this.cut.isMultiplexed ? this.#progressAt : this.connection.progressAt;
    return this.heldBytes > 0 && this.#budget.timeMs - since >= this.#budget.limits.stallMs;
  }

  #release(bytes: number): void {
    const wasFull = this.#budget.heldBytes >= this.#budget.limits.totalBytes;
    this.#count(-Math.min(bytes, this.heldBytes));
    if (wasFull || (this.caller && this.caller.waiting.size > 0)) this.#budget.admit(this.caller, wasFull);
  }

  #endReading(): void {
    if (!this.#isReading || !this.caller || this.#read === undefined) return;
    this.#isReading = false;
    this.caller.reads.set(this.#read, (this.caller.reads.get(this.#read) ?? 0) - 1);
  }

  #count(bytes: number): void {
    this.heldBytes += bytes;
    this.connection.heldBytes += bytes;
    this.#budget.heldBytes += bytes;
    if (this.caller) this.caller.heldBytes += bytes;
  }
}
