import { yieldToEventLoop } from "../services/call/yield-to-event-loop.ts";

/** Time for which work runs before others have a turn, in milliseconds. */
const TURN_MS = 5;

/** Runs work that yields now and then, and lets pending events have their turn in between. */
export async function runInTurns<T>(work: Generator<unknown, T>): Promise<T> {
  const pause = pauses();
  for (let step = work.next(); ; step = work.next()) {
    if (step.done) return step.value;
    await pause();
  }
}

/** Yields values, each made when it is asked for, and lets pending events have their turn in between. */
export async function* inTurns<T>(values: Iterable<T>): AsyncIterable<T> {
  const pause = pauses();
  for (const value of values) {
    yield value;
    await pause();
  }
}

/** Returns a function that waits for pending events when the turn of its caller is over. */
function pauses(): () => Promise<void> | undefined {
  let began = performance.now();
  return () => {
    if (performance.now() - began < TURN_MS) return undefined;
    return yieldToEventLoop().then(() => {
      began = performance.now();
    });
  };
}
