import { setTimeout as delay } from "node:timers/promises";

const MIN_DELAY_MS = 500;
const MAX_DELAY_MS = 30_000;

/**
 * Returns how long to wait before the next attempt, in milliseconds. The time doubles after each failure, up to 30 s.
 * Random jitter reduces it by up to half, so that runners do not all call a recovered server at once.
 *
 * @param failures number of consecutive failures, from 1
 * @param random a random number from 0 to 1
 */
export function backOffMs(failures: number, random = Math.random()): number {
  const wholeMs = Math.min(MIN_DELAY_MS * 2 ** (failures - 1), MAX_DELAY_MS);
  return (wholeMs / 2) * (1 + random);
}

/** Waits; returns early, without an error, when `signal` is aborted. */
export async function pause(waitMs: number, signal: AbortSignal): Promise<void> {
  await delay(Math.max(0, waitMs), undefined, { signal }).catch(() => undefined);
}
