/** Calls a function whenever something may have happened. Returns what ends it. */
export type Subscribe = (wake: () => void) => () => void;

/** Wakes a stream that waits for something to have happened. */
export interface Notifier {
  /**
   * Resolves when something happened after this call, when a signal aborts, or
   * after `withinMs` where that is given. To be called before looking, so that
   * nothing comes in between.
   */
  next(withinMs?: number): Promise<void>;
  close(): void;
}

/** @param signals what else wakes the stream, and from then on lets it wait no more */
export function createNotifier(subscribe: Subscribe, signals: readonly AbortSignal[]): Notifier {
  let ring = () => {};
  let timer: NodeJS.Timeout | undefined;
  const wake = () => ring();
  const leave = subscribe(wake);
  for (const signal of signals) signal.addEventListener("abort", wake);
  return {
    next(withinMs) {
      clearTimeout(timer);
      if (signals.some(({ aborted }) => aborted)) return Promise.resolve();
      return new Promise((resolve) => {
        ring = resolve;
        if (withinMs !== undefined) timer = setTimeout(resolve, Math.min(withinMs, LONGEST_TIMER_MS));
      });
    },
    close() {
      clearTimeout(timer);
      leave();
      for (const signal of signals) signal.removeEventListener("abort", wake);
    },
  };
}

/** Past this, timers of Node fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
