import type { OutputAccount } from "../../rpc/access/call-record.ts";
import type { CallerReads } from "./caller-reads.ts";
import type { OutputBudget } from "./output-budget.ts";

/**
 * How a response can make progress. `later`: not yet, since HTTP/1 sends earlier
 * responses first. `shared`: together with other responses on its connection.
 * `own`: only through its own reader, as the connection has nothing else to send.
 */
export type Turn = "later" | "shared" | "own";

/** The connection under a response. */
export interface ResponseTransport {
  /** Returns the number of bytes of the whole connection that the operating system has accepted so far. */
  writtenBytes(): number;
  turn(): Turn;
  /** Ends this response; on HTTP/1 its connection with it. */
  cutResponse(): void;
  cutConnection(): void;
}

/** One connection and the responses on it. */
export interface ConnectionOutput {
  readonly outputs: Set<ResponseOutput>;
  heldBytes: number;
  /** The bytes sent since the connection began to hold any, as of the budget's last check. */
  takenBytes: number;
  /** The time at which the connection began to hold bytes. */
  heldSince: number;
  /** The number of bytes that the operating system had accepted at the last check; undefined before the first. */
  writtenBytes: number | undefined;
}

/** One caller, while it has calls. */
export interface CallerOutput {
  readonly key: string;
  calls: number;
  heldBytes: number;
  /** The number of its calls that wait. */
  waiting: number;
  /** Its reads in progress, by operation. */
  readonly reads: Map<string, CallerReads>;
}

/** Counts the bytes of one response. There is one for each request, so it uses fields and not closures. */
export class ResponseOutput implements OutputAccount {
  readonly connection: ConnectionOutput;
  readonly transport: ResponseTransport;
  readonly #budget: OutputBudget;
  caller: CallerOutput | undefined;
  heldBytes = 0;
  isOpen = true;
  /** The time at which its reader last made progress, or was not able to for reasons outside its control. */
  progressAt = 0;
  /** The operation, while the call occupies a slot for reads. */
  read: string | undefined;
  /** For a read: the bytes that it holds before it grows to a full page; undefined when it begins as a full page. */
  shortBytes: number | undefined;
  isFullPage = false;

  constructor(budget: OutputBudget, connection: ConnectionOutput, transport: ResponseTransport) {
    this.#budget = budget;
    this.connection = connection;
    this.transport = transport;
  }

  charge(callerKey: string): void {
    if (!this.isOpen || this.caller) return;
    this.caller = this.#budget.callerOf(callerKey);
    this.caller.calls++;
  }

  enter(read: string | undefined, shortBytes?: number): Promise<void> | undefined {
    if (!this.isOpen || !this.caller) return undefined;
    return this.#budget.admission.enter(this, this.caller, read, shortBytes, this.#budget.timeMs);
  }

  enlarge(): Promise<void> | undefined {
    if (!this.isOpen || !this.caller) return undefined;
    return this.#budget.admission.enlarge(this, this.caller, this.#budget.timeMs);
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
