import type { Store } from "../store/store.ts";

/** Commits of other processes, such as the command line, are not told of; they are looked for this often. */
const LOOK_EVERY_MS = 1_000;

/** Wakes a stream that waits for something to have happened. */
export interface Bell {
  /**
   * Resolves at the next commit after this call, when a signal aborts, or after
   * a second, or sooner where `withinMs` says so. To be called before looking, so
   * that nothing comes in between.
   */
  next(withinMs?: number): Promise<void>;
  close(): void;
}

/** @param signals what else wakes the stream, and from then on lets it wait no more */
export function createBell(store: Pick<Store, "onCommit">, signals: readonly AbortSignal[]): Bell {
  let ring = () => {};
  let timer: NodeJS.Timeout | undefined;
  const wake = () => ring();
  const leave = store.onCommit(wake);
  for (const signal of signals) signal.addEventListener("abort", wake);
  return {
    next(withinMs = LOOK_EVERY_MS) {
      clearTimeout(timer);
      if (signals.some(({ aborted }) => aborted)) return Promise.resolve();
      return new Promise((resolve) => {
        ring = resolve;
        timer = setTimeout(resolve, Math.min(withinMs, LOOK_EVERY_MS));
      });
    },
    close() {
      clearTimeout(timer);
      leave();
      for (const signal of signals) signal.removeEventListener("abort", wake);
    },
  };
}
