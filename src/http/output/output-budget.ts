import {
  type CallerOutput,
  type ConnectionOutput,
  ResponseOutput,
  type ResponseTransport,
} from "./output-account.ts";
import { OutputAdmission } from "./output-admission.ts";
import type { OutputLimits } from "./output-limits.ts";

/** A reader that was cut off, and the reason. */
export interface SlowReader {
  readonly reason: "stalled" | "caller" | "total";
  /** The caller; undefined before a token was accepted. */
  readonly callerKey: string | undefined;
  /** The bytes that its connection held. */
  readonly heldBytes: number;
}

/** Minimum age at which a connection can be closed as the slowest: its rate is not known earlier. */
const MEASURED_MS = 1_000;

/** Time for which a call waits for its caller's other connections before the slowest of them is closed. */
const CALLER_WAIT_MS = 10_000;

/**
 * Limits the bytes that wait for slow readers: per connection, per caller and in
 * total. Beyond a limit further calls wait before they produce anything. A reader
 * that makes no progress is cut off, and so is the slowest one when the total is
 * reached.
 */
export class OutputBudget {
  readonly admission = new OutputAdmission((output, caller) => this.#hasRoom(output, caller));
  readonly #limits: OutputLimits;
  readonly #onCut: (reader: SlowReader) => void;
  /** The accounts by connection, for as long as it exists: all responses on a connection share one. */
  readonly #connections = new WeakMap<object, ConnectionOutput>();
  /** Connections that hold anything. */
  readonly #holding = new Set<ConnectionOutput>();
  readonly #callers = new Map<string, CallerOutput>();
  /** The bytes held in all. */
  heldBytes = 0;
  /** The clock, advanced only by {@link pass}. */
  timeMs = 0;

  constructor(limits: OutputLimits, onCut: (reader: SlowReader) => void) {
    this.#limits = limits;
    this.#onCut = onCut;
  }

  /**
   * Opens the account of one response. To be ended when the response closes.
   *
   * @param key one object for each connection, the same for all responses on it
   */
  open(key: object, transport: ResponseTransport): ResponseOutput {
    let connection = this.#connections.get(key);
    if (!connection) {
      connection = {
        outputs: new Set(),
        heldBytes: 0,
        takenBytes: 0,
        heldSince: this.timeMs,
        writtenBytes: undefined,
      };
      this.#connections.set(key, connection);
    }
    const output = new ResponseOutput(this, connection, transport);
    connection.outputs.add(output);
    return output;
  }

  /** Starts to watch a connection that now holds bytes. */
  holds(connection: ConnectionOutput): void {
    connection.heldSince = this.timeMs;
    connection.takenBytes = 0;
    connection.writtenBytes = undefined;
    this.#holding.add(connection);
  }

  /** Stops watching a connection that no longer holds bytes. */
  holdsNothing(connection: ConnectionOutput): void {
    this.#holding.delete(connection);
  }

  /**
   * Advances the clock and cuts off readers that are too slow; to be called at short
   * intervals. Time in which the server was blocked is not counted.
   */
  pass(elapsedMs: number): void {
    this.timeMs += elapsedMs;
    for (const connection of this.#holding) this.#cutStalled(connection);
    for (const caller of this.admission.waitingSince(this.timeMs - CALLER_WAIT_MS)) {
      if (caller.heldBytes >= this.#limits.callerBytes) this.#cutSlowest("caller", caller);
    }
    this.relieve();
    this.admission.released();
  }

  /**
   * Closes the slowest connections until the total is within its limit, or no
   * connection is known to be slow.
   */
  relieve(): void {
    while (this.heldBytes >= this.#limits.totalBytes) if (!this.#cutSlowest("total")) return;
  }

  callerOf(key: string): CallerOutput {
    let caller = this.#callers.get(key);
    if (!caller) {
      caller = { key, calls: 0, heldBytes: 0, waiting: 0, reads: new Map() };
      this.#callers.set(key, caller);
    }
    return caller;
  }

  /** Removes a response, and its caller when it was the last one. */
  ended(output: ResponseOutput): void {
    const { connection, caller } = output;
    connection.outputs.delete(output);
    if (caller && --caller.calls === 0) this.#callers.delete(caller.key);
  }

  #hasRoom({ connection }: ResponseOutput, caller: CallerOutput): boolean {
    const { connectionBytes, callerBytes, totalBytes } = this.#limits;
    return (
      connection.heldBytes < connectionBytes && caller.heldBytes < callerBytes && this.heldBytes < totalBytes
    );
  }

  /** Cuts off the responses of a connection that could have made progress but made none for too long. */
  #cutStalled(connection: ConnectionOutput): void {
    let progressed: boolean | undefined;
    for (const output of [...connection.outputs]) {
      if (output.heldBytes === 0) continue;
      progressed ??= measure(connection, output.transport.writtenBytes());
      const turn = output.transport.turn();
      if (turn === "later" || (turn === "shared" && progressed)) output.progressAt = this.timeMs;
      else if (this.timeMs - output.progressAt >= this.#limits.stallMs) this.#cut(output, "stalled");
    }
  }

  /** Closes the slowest connection. @returns whether there was one */
  #cutSlowest(reason: "caller" | "total", of?: CallerOutput): boolean {
    let slowest: ResponseOutput | undefined;
    let slowestRate = Number.POSITIVE_INFINITY;
    for (const { outputs, heldSince, takenBytes } of this.#holding) {
      const measuredMs = this.timeMs - heldSince;
      if (measuredMs < MEASURED_MS) continue;
      const rate = takenBytes / measuredMs;
      const holding = [...outputs].find((output) => output.heldBytes > 0 && (!of || output.caller === of));
      if (!holding || rate >= slowestRate) continue;
      slowest = holding;
      slowestRate = rate;
    }
    if (slowest) this.#cut(slowest, reason);
    return slowest !== undefined;
  }

  #cut(output: ResponseOutput, reason: SlowReader["reason"]): void {
    const { caller, connection, transport } = output;
    this.#onCut({ reason, callerKey: caller?.key, heldBytes: connection.heldBytes });
    const isWhole = reason !== "stalled";
    for (const each of isWhole ? [...connection.outputs] : [output]) each.end();
    if (isWhole) transport.cutConnection();
    else transport.cutResponse();
  }
}

/**
 * Records the bytes of a connection that the operating system has accepted;
 * returns true at the first check, and when they have grown since the last one.
 */
function measure(connection: ConnectionOutput, writtenBytes: number): boolean {
  const before = connection.writtenBytes;
  if (before !== undefined && writtenBytes <= before) return false;
  connection.writtenBytes = writtenBytes;
  if (before !== undefined) connection.takenBytes += writtenBytes - before;
  return true;
}
