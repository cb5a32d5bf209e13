import { setTimeout as delay } from "node:timers/promises";

const EVERY_MS = 50;
/** What still hangs then will hang for good; less than a test may take, so that the last answer is told. */
const MOST_MS = 100_000;

/** Asks again and again until the answer fits: for what no event tells. Fails with the last answer after `mostMs`. */
export async function until<T>(
  ask: () => T | Promise<T>,
  fits: (answer: T) => boolean,
  mostMs = MOST_MS,
): Promise<T> {
  for (const began = performance.now(); ; await delay(EVERY_MS)) {
    const answer = await ask();
    if (fits(answer)) return answer;
    if (performance.now() - began > mostMs) {
      throw new Error(`the answer never fitted; at last it was ${JSON.stringify(answer, null, 1)}`);
    }
  }
}
