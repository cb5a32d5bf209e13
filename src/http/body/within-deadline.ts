import { deadlinePassed } from "../../rpc/request/request-failure.ts";

/**
 * Runs `work` until the request's deadline.
 *
 * @param leftMs undefined for no deadline
 * @param work gets a signal that is aborted as `signal` is, and at the deadline
 *   with a ConnectError deadline_exceeded
 */
export async function withinDeadline<T>(
  signal: AbortSignal,
  leftMs: number | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (leftMs === undefined) return work(signal);
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(deadlinePassed()), leftMs);
  try {
    return await work(AbortSignal.any([signal, over.signal]));
  } finally {
    clearTimeout(timer);
  }
}
