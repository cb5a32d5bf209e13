/** A function that calls `wake` whenever something may have happened. Returns the function that ends the subscription. */
export type Subscribe = (wake: () => void) => () => void;

/** Wakes a stream that waits for changes. */
export interface Notifier {
  /**
   * Resolves when something happens after this call, when a signal aborts, or after `withinMs` if given. Call it
   * before reading the state, or a change in between is missed.
   */
  next(withinMs?: number): Promise<void>;
  /** Ends the subscription. */
  close(): void;
}

/**
 * Creates a notifier. @param signals signals that also wake the stream; once one is aborted, `next` never waits again
 */
export function createNotifier(subscribe: Subscribe, signals: readonly AbortSignal[]): Notifier {
  let notify = () => {};
  let timer: NodeJS.Timeout | undefined;
  const wake = () => notify();
  const unsubscribe = subscribe(wake);
  for (const signal of signals) signal.addEventListener("abort", wake);
  return {
    next(withinMs) {
      clearTimeout(timer);
      if (signals.some(({ aborted }) => aborted)) return Promise.resolve();
      return new Promise((resolve) => {
        notify = resolve;
        if (withinMs !== undefined) timer = setTimeout(resolve, Math.min(withinMs, MAX_TIMER_MS));
      });
    },
    close() {
      clearTimeout(timer);
      unsubscribe();
      for (const signal of signals) signal.removeEventListener("abort", wake);
    },
  };
}

/** Maximum delay of a Node timer; longer ones fire immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1;
