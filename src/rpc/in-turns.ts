import { yieldToEventLoop } from "../services/call/yield-to-event-loop.ts";

/** Work goes on for so long before others have a turn. */
const TURN_MS = 5;

/** Does work that stops now and then, and lets whatever came in have its turn in between. */
export async function inTurns<T>(work: Generator<void, T>): Promise<T> {
  let began = performance.now();
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    if (performance.now() - began < TURN_MS) continue;
    await yieldToEventLoop();
    began = performance.now();
  }
}
