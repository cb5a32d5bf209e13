import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { writeConnectError } from "../../rpc/error/error.ts";

/** Bodies up to this size are not counted: they have mostly arrived together with their headers. */
const FREE_BYTES = 16 * 1024;

export interface BudgetLimits {
  /** Maximum for the bodies of one account, service account, runner or environment. */
  readonly callerBytes: number;
  /** Maximum for all bodies. */
  readonly totalBytes: number;
}

/** Limits the bytes of request bodies that are in memory at the same time. */
export class BodyBudget {
  readonly #limits: BudgetLimits;
  readonly #held = new Map<string, number>();
  #total = 0;

  constructor(limits: BudgetLimits) {
    this.#limits = limits;
  }

  /** Opens the account of one body; `release` must be called when the body is no longer needed. */
  hold(caller: string): BodyHold {
    return new BodyHold(this, caller);
  }

  /**
   * Adds to the bytes of a caller, for BodyHold only; a negative number gives
   * back.
   *
   * @throws ConnectError BODY_BUDGET_EXCEEDED, when nothing was added
   */
  add(caller: string, bytes: number): void {
    const held = (this.#held.get(caller) ?? 0) + bytes;
    const { callerBytes, totalBytes } = this.#limits;
    if (bytes > 0 && held > callerBytes) throw exceeded("your", callerBytes);
    if (bytes > 0 && this.#total + bytes > totalBytes) throw exceeded("the", totalBytes);
    this.#total += bytes;
    if (held > 0) this.#held.set(caller, held);
    else this.#held.delete(caller);
  }
}

/**
 * The bytes of one body that count against the budget. One for each request, so
 * it has fields and no closures.
 */
export class BodyHold {
  readonly #budget: BodyBudget;
  readonly #caller: string;
  #bytes = 0;

  constructor(budget: BodyBudget, caller: string) {
    this.#budget = budget;
    this.#caller = caller;
  }

  /**
   * Sets the number of bytes that the body holds from now on.
   *
   * @throws ConnectError BODY_BUDGET_EXCEEDED; the number is unchanged then
   */
  set(bytes: number): void {
    const counted = bytes > FREE_BYTES ? bytes : 0;
    if (counted === this.#bytes) return;
    this.#budget.add(this.#caller, counted - this.#bytes);
    this.#bytes = counted;
  }

  release(): void {
    this.set(0);
  }
}

function exceeded(whose: string, limitBytes: number) {
  const message = `${whose} requests that the server reads at the same time are more than ${limitBytes} bytes together: send this one again when others are answered`;
  return writeConnectError(ErrorReason.BODY_BUDGET_EXCEEDED, message, { limit_bytes: String(limitBytes) });
}
