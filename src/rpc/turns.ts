import { yieldToEventLoop } from "../services/call/yield-to-event-loop.ts";

/** Time for which work runs before others have a turn, in milliseconds. */
const TURN_MS = 5;

/** Runs work that yields now and then, and lets pending events have their turn in between. */
export async function runInTurns<T>(work: Generator<unknown, T>): Promise<T> {
  let began = performance.now();
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    if (performance.now() - began < TURN_MS) continue;
    await yieldToEventLoop();
    began = performance.now();
  }
}

/** Yields what is made as it is asked for, and lets pending events have their turn in between. */
export async function* inTurns<T>(values: Iterable<T>): AsyncIterable<T> {
  let began = performance.now();
  for (const value of values) {
    yield value;
    if (performance.now() - began < TURN_MS) continue;
    await yieldToEventLoop();
    began = performance.now();
  }
}
