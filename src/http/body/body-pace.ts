import type { ListenerLimits } from "../connection/listener-limits.ts";

/**
 * The part of the idle limit for which a rate is measured before it counts, so
 * that one late packet has no effect.
 */
const MEASURED_FRACTION = 1 / 8;

type PaceLimits = Pick<ListenerLimits, "bodyIdleMs" | "bodyMinBytesPerSecond" | "checkIntervalMs" | "now">;

/** The measured speed of one request body. */
export interface BodyPace {
  arrived(bytes: number): void;
  full(): void;
  wanted(): void;
  isTooSlow(): boolean;
}

/**
 * Starts to measure a body. Only time in which the server accepted bytes counts:
 * the client is not responsible when the server does not read or is blocked. The
 * pace must be checked every `checkIntervalMs`.
 */
export function measurePace(limits: PaceLimits): BodyPace {
  return new Account(limits);
}

/** There is one for each request with a body, so it uses fields and not closures. */
class Account implements BodyPace {
  readonly #limits: PaceLimits;
  #accountedAt: number;
  #isTaking = true;
  #elapsedMs = 0;
  #idleMs = 0;
  #bytesAfterGrace = 0;

  constructor(limits: PaceLimits) {
    this.#limits = limits;
    this.#accountedAt = limits.now();
  }

  arrived(bytes: number): void {
    this.#account();
    this.#idleMs = 0;
    if (this.#elapsedMs > this.#limits.bodyIdleMs) this.#bytesAfterGrace += bytes;
  }

  full(): void {
    this.#account();
    this.#isTaking = false;
  }

  wanted(): void {
    this.#account();
    this.#isTaking = true;
  }

  isTooSlow(): boolean {
    this.#account();
    const { bodyIdleMs: graceMs, bodyMinBytesPerSecond } = this.#limits;
    if (this.#idleMs >= graceMs) return true;
    const measuredMs = this.#elapsedMs - graceMs;
    if (measuredMs < graceMs * MEASURED_FRACTION) return false;
    return this.#bytesAfterGrace < (measuredMs / 1_000) * bodyMinBytesPerSecond;
  }

  #account(): void {
    const now = this.#limits.now();
    if (this.#isTaking) {
      // Every account is checked once in an interval: in any longer time the server itself was blocked.
      const ms = Math.min(now - this.#accountedAt, this.#limits.checkIntervalMs);
      this.#elapsedMs += ms;
      this.#idleMs += ms;
    }
    this.#accountedAt = now;
  }
}
