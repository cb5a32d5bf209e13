import { setTimeout as delay } from "node:timers/promises";

const FIRST_MS = 500;
const LONGEST_MS = 30_000;

/**
 * How long to wait before trying again, in milliseconds: twice as long after
 * each failure, up to 30 s, and by chance down to half of that, so that the
 * runners of a server that comes back do not all call at once.
 *
 * @param failures how many there were in a row, from 1
 * @param chance from 0 to 1
 */
export function backOffMs(failures: number, chance = Math.random()): number {
  const wholeMs = Math.min(FIRST_MS * 2 ** (failures - 1), LONGEST_MS);
  return (wholeMs / 2) * (1 + chance);
}

/** Waits; returns early, without an error, when `signal` is aborted. */
export async function pause(waitMs: number, signal: AbortSignal): Promise<void> {
  await delay(Math.max(0, waitMs), undefined, { signal }).catch(() => undefined);
}
