import type { OutputAccount } from "../../rpc/access/call-record.ts";
import type { OutputBudget } from "./output-budget.ts";

/**
 * Whether an answer can progress: not yet (HTTP/1 sends the answers before it
 * first), only with its connection, which is busy with several, or by its own
 * reader alone, as the connection has nothing else to send.
 */
export type Turn = "later" | "shared" | "own";

/** The connection under an answer. */
export interface AnswerTransport {
  /** Returns how many bytes the system has taken of the whole connection so far. */
  writtenBytes(): number;
  turn(): Turn;
  /** Ends this answer; on HTTP/1 its connection with it. */
  cutAnswer(): void;
  cutConnection(): void;
}

/** One connection and the answers on it. */
export interface ConnectionOutput {
  readonly outputs: Set<AnswerOutput>;
  heldBytes: number;
  /** Taken since it holds anything, as far as the budget has looked. */
  takenBytes: number;
  /** Since when it holds anything. */
  heldSince: number;
  /** What the system had taken at the last look; undefined before the first. */
  writtenBytes: number | undefined;
}

/** One caller, while it has calls. */
export interface CallerOutput {
  readonly key: string;
  calls: number;
  heldBytes: number;
  /** Calls in the list of those that wait. */
  waiting: number;
  /** By operation: its calls without side effects that produce their answers. */
  readonly reads: Map<string, number>;
}

/** Counts the bytes of one answer. One for each request, so it has fields and no closures. */
export class AnswerOutput implements OutputAccount {
  readonly connection: ConnectionOutput;
  readonly transport: AnswerTransport;
  readonly #budget: OutputBudget;
  caller: CallerOutput | undefined;
  heldBytes = 0;
  isOpen = true;
  /** When its reader was last seen to take something, or could not. */
  progressAt = 0;
  /** The operation, while the call occupies a place for reads. */
  read: string | undefined;

  constructor(budget: OutputBudget, connection: ConnectionOutput, transport: AnswerTransport) {
    this.#budget = budget;
    this.connection = connection;
    this.transport = transport;
  }

  charge(callerKey: string): void {
    if (!this.isOpen || this.caller) return;
    this.caller = this.#budget.callerOf(callerKey);
    this.caller.calls++;
  }

  enter(read: string | undefined): Promise<void> | undefined {
    if (!this.isOpen || !this.caller) return undefined;
    return this.#budget.admission.enter(this, this.caller, read, this.#budget.timeMs);
  }

  leave(): void {
    this.#budget.admission.leave(this);
  }

  hold(bytes: number): void {
    if (!this.isOpen) return;
    if (this.heldBytes === 0) this.progressAt = this.#budget.timeMs;
    this.#count(bytes);
    this.#budget.admission.endRead(this);
    this.#budget.relieve();
  }

  take(bytes: number): void {
    if (!this.isOpen) return;
    this.progressAt = this.#budget.timeMs;
    this.#count(-Math.min(bytes, this.heldBytes));
    this.#budget.admission.released();
  }

  /** Releases everything that it holds. */
  end(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.#count(-this.heldBytes);
    const { admission } = this.#budget;
    admission.leave(this);
    admission.endRead(this);
    this.#budget.ended(this);
    admission.released();
  }

  #count(bytes: number): void {
    if (bytes === 0) return;
    const { connection } = this;
    if (connection.heldBytes === 0) this.#budget.holds(connection);
    this.heldBytes += bytes;
    connection.heldBytes += bytes;
    this.#budget.heldBytes += bytes;
    if (this.caller) this.caller.heldBytes += bytes;
    if (connection.heldBytes === 0) this.#budget.holdsNothing(connection);
  }
}
