/** Maximum time of a timer: a longer one would fire immediately. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Runs `fn` under a signal that is aborted with `reason` after a time, or with
 * its own reason when `signal` is. A time of more than 24 days is no limit: the
 * service ends work that takes longer.
 *
 * @param timeMs undefined for no limit
 */
export async function withTimeLimit<T>(
  timeMs: number | undefined,
  signal: AbortSignal,
  reason: Error,
  fn: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (timeMs === undefined || timeMs > MAX_TIMER_MS) return fn(signal);
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(reason), timeMs);
  try {
    return await fn(AbortSignal.any([signal, over.signal]));
  } finally {
    clearTimeout(timer);
  }
}
