import { setTimeout as delay } from "node:timers/promises";

const INTERVAL_MS = 50;
/**
 * Whatever still hangs by then hangs forever; shorter than a test's timeout, so that the failure
 * shows the last result.
 */
const TIMEOUT_MS = 240_000;

/**
 * Polls until the result matches, for states that no event announces. Throws with the last result
 * after `mostMs`.
 */
export async function until<T>(
  poll: () => T | Promise<T>,
  fits: (answer: T) => boolean,
  timeoutMs = TIMEOUT_MS,
): Promise<T> {
  for (const began = performance.now(); ; await delay(INTERVAL_MS)) {
    const answer = await poll();
    if (fits(answer)) return answer;
    if (performance.now() - began > timeoutMs) {
      throw new Error(`the answer never fitted; at last it was ${JSON.stringify(answer, null, 1)}`);
    }
  }
}
