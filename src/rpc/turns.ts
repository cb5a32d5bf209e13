import { yieldToEventLoop } from "../services/call/yield-to-event-loop.ts";

/** Time in milliseconds for which work runs before it yields to the event loop. */
const TURN_MS = 5;

/** Runs work that yields from time to time, and lets the event loop handle pending events in between. */
export async function runInTurns<T>(work: Generator<unknown, T>): Promise<T> {
  const pause = pauses();
  for (let step = work.next(); ; step = work.next()) {
    if (step.done) return step.value;
    await pause();
  }
}

/** Yields values, each created on demand, and lets the event loop handle pending events in between. */
export async function* inTurns<T>(values: Iterable<T>): AsyncIterable<T> {
  const pause = pauses();
  for (const value of values) {
    yield value;
    await pause();
  }
}

/** Returns a function that waits for pending events once its caller has run for {@link TURN_MS}. */
function pauses(): () => Promise<void> | undefined {
  let began = performance.now();
  return () => {
    if (performance.now() - began < TURN_MS) return undefined;
    return yieldToEventLoop().then(() => {
      began = performance.now();
    });
  };
}
