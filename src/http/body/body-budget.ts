import type { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { writeConnectError } from "../../rpc/error/error.ts";
import type { BodyAccount } from "../../rpc/request/arriving-bytes.ts";

/** Bodies up to this size are not counted: they have mostly arrived together with their headers. */
const FREE_BYTES = 16 * 1024;

/**
 * A body is slow, and may be refused for others, when it takes longer than this
 * plus the time for its bytes at the rate below. The largest request, of 59 MiB,
 * has about a minute.
 */
const GRACE_MS = 5_000;
const BYTES_PER_MS = 1024;

export interface BudgetLimits {
  /** Maximum for the bodies of one account, service account, runner or environment. */
  readonly callerBytes: number;
  /** Maximum for all bodies. */
  readonly totalBytes: number;
  /** In milliseconds. */
  readonly now: () => number;
}

/**
 * Limits the bytes of request bodies that are in memory at the same time: the
 * bytes that have arrived, and those unpacked from them. A Content-Length alone
 * reserves nothing.
 *
 * No body waits for memory. When new bytes would exceed a limit, incomplete bodies
 * are refused until the bytes fit; the body with the new bytes may be one of them.
 * Past the limit of a caller only that caller's bodies are refused, past the total
 * limit those of all callers, in this order:
 *
 * 1. All but the oldest body of each caller, beginning with the caller that holds
 *    the most: many requests cannot push out those of other callers.
 * 2. The oldest body of a caller, when it is slow: memory cannot be kept by
 *    sending little.
 * 3. The oldest body of any other caller.
 *
 * Within each step the youngest is refused first, so the oldest body that is not
 * slow is refused last. It can always complete, since every body fits on its own:
 * incomplete bodies cannot block each other. Complete bodies keep their memory,
 * since they are parsed within a bounded time.
 */
export class BodyBudget {
  readonly #limits: BudgetLimits;
  readonly #held = new Map<string, number>();
  /** The counted bodies, the oldest first. */
  readonly #bodies = new Set<BodyHold>();
  #total = 0;

  constructor(limits: BudgetLimits) {
    this.#limits = limits;
  }

  /** Opens the account of one body; `release` must be called when the body is no longer needed. */
  hold(caller: string): BodyHold {
    return new BodyHold(this, caller);
  }

  /**
   * Changes the counted bytes of a body; called only by BodyHold.
   *
   * @returns the time from which the body counts
   * @throws ConnectError BODY_BUDGET_EXCEEDED; then nothing was changed
   */
  change(body: BodyHold, bytes: number): number {
    const { caller } = body;
    const since = this.#bodies.has(body) ? body.since : this.#limits.now();
    const more = bytes - body.bytes;
    if (more > 0) this.#makeRoom(body, since, more);
    this.#total += more;
    const held = (this.#held.get(caller) ?? 0) + more;
    if (held > 0) this.#held.set(caller, held);
    else this.#held.delete(caller);
    if (bytes > 0) this.#bodies.add(body);
    else this.#bodies.delete(body);
    return since;
  }

  #makeRoom(body: BodyHold, since: number, more: number): void {
    const { callerBytes, totalBytes } = this.#limits;
    const { caller } = body;
    while ((this.#held.get(caller) ?? 0) + more > callerBytes) {
      this.#refuse(this.#leastOf(body, since, more, caller), body, exceeded("your", callerBytes));
    }
    while (this.#total + more > totalBytes) {
      this.#refuse(this.#leastOf(body, since, more), body, exceeded("the", totalBytes));
    }
  }

  #refuse(least: BodyHold, asking: BodyHold, error: ConnectError): void {
    if (least === asking) throw error;
    least.refuse(error);
  }

  /**
   * Returns the body to refuse next.
   *
   * @param asking the body with new bytes, which may not be counted yet
   * @param caller considers only the bodies of this caller; all bodies without it
   */
  #leastOf(asking: BodyHold, since: number, more: number, caller?: string): BodyHold {
    const now = this.#limits.now();
    const seen = new Set<string>();
    let least = asking;
    let leastRank = Number.POSITIVE_INFINITY;
    const compare = (body: BodyHold, bytes: number, began: number): void => {
      const isOldest = !seen.has(body.caller);
      seen.add(body.caller);
      if ((caller !== undefined && body.caller !== caller) || !(body.isArriving || body === asking)) return;
      const held = (this.#held.get(body.caller) ?? 0) + (body.caller === asking.caller ? more : 0);
      const isSlow = now - began > GRACE_MS + bytes / BYTES_PER_MS;
      const rank = isOldest ? (isSlow ? 0 : 1) : -held;
      if (rank > leastRank) return;
      least = body;
      leastRank = rank;
    };
    for (const body of this.#bodies) compare(body, body.bytes, body.since);
    if (!this.#bodies.has(asking)) compare(asking, more, since);
    return least;
  }
}

/**
 * The bytes of one body that count against the budget. There is one for each
 * request, so it uses fields and not closures.
 */
export class BodyHold implements BodyAccount {
  readonly caller: string;
  readonly #budget: BodyBudget;
  #bytes = 0;
  #since = 0;
  #isArriving = false;
  #refused: ((error: ConnectError) => void) | undefined;
  #error: ConnectError | undefined;

  constructor(budget: BodyBudget, caller: string) {
    this.#budget = budget;
    this.caller = caller;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get since(): number {
    return this.#since;
  }

  get isArriving(): boolean {
    return this.#isArriving;
  }

  arriving(refused?: (error: ConnectError) => void): void {
    this.#isArriving = true;
    this.#refused = refused;
  }

  set(bytes: number): void {
    if (this.#error) throw this.#error;
    this.#change(bytes > FREE_BYTES ? bytes : 0);
  }

  arrived(): void {
    this.#isArriving = false;
    this.#refused = undefined;
    if (this.#error) throw this.#error;
  }

  /** Refuses the body; called only by BodyBudget. */
  refuse(error: ConnectError): void {
    this.#error = error;
    this.release();
    this.#refused?.(error);
  }

  release(): void {
    this.#change(0);
  }

  #change(counted: number): void {
    if (counted === this.#bytes) return;
    this.#since = this.#budget.change(this, counted);
    this.#bytes = counted;
  }
}

function exceeded(whose: string, limitBytes: number): ConnectError {
  const message = `${whose} requests that the server reads at the same time are more than ${limitBytes} bytes together: send this one again when others are answered`;
  return writeConnectError(ErrorReason.BODY_BUDGET_EXCEEDED, message, { limit_bytes: String(limitBytes) });
}
