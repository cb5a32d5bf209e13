import type { ListenerLimits } from "./listener-limits.ts";

/** The part of the idle limit for which a rate is measured before it counts, so that one late packet does not. */
const MEASURED_PART = 1 / 8;

/** How fast one request body comes. */
export interface BodyPace {
  arrived(bytes: number): void;
  full(): void;
  wanted(): void;
  isTooSlow(): boolean;
}

/**
 * Keeps the account of a body that begins now. Only time in which our side
 * took bytes counts: a client cannot help a server that does not read.
 */
export function measurePace(
  limits: Pick<ListenerLimits, "bodyIdleMs" | "bodyMinBytesPerSecond" | "now">,
): BodyPace {
  const graceMs = limits.bodyIdleMs;
  let accountedAt = limits.now();
  let isTaking = true;
  let elapsedMs = 0;
  let idleMs = 0;
  let bytesAfterGrace = 0;

  const account = (): void => {
    const now = limits.now();
    if (isTaking) {
      elapsedMs += now - accountedAt;
      idleMs += now - accountedAt;
    }
    accountedAt = now;
  };

  return {
    arrived(bytes) {
      account();
      idleMs = 0;
      if (elapsedMs > graceMs) bytesAfterGrace += bytes;
    },
    full() {
      account();
      isTaking = false;
    },
    wanted() {
      account();
      isTaking = true;
    },
    isTooSlow() {
      account();
      if (idleMs >= graceMs) return true;
      const measuredMs = elapsedMs - graceMs;
      if (measuredMs < graceMs * MEASURED_PART) return false;
      return bytesAfterGrace < (measuredMs / 1_000) * limits.bodyMinBytesPerSecond;
    },
  };
}
