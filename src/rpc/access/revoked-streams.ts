import type { Interceptor } from "@connectrpc/connect";
import { callerKey } from "../../services/call/call.ts";
import {
  type RevocationMonitor,
  type RevocationWatch,
  revokedKey,
} from "../../services/call/revocation-monitor.ts";
import type { StreamSlots } from "../../services/call/stream-slots.ts";

/**
 * Ends a stream as soon as its caller may not go on: the caller is authenticated
 * only once, when a call begins, and a stream may be open for days. Streams of
 * service.v1 occupy a slot for as long as they are open; those of runners are
 * limited by the leases that they hold.
 */
export function revokeStreams(signals: RevocationMonitor, slots: StreamSlots): Interceptor {
  const whileAllowed = async (next: AnyFn, req: AnyRequest) => {
    const caller = req.contextValues.get(callerKey);
    if (!caller) return next(req);
    const leave = req.service.typeName.startsWith("service.v1.") ? slots.take(caller) : () => {};
    const watched = signals.watch(caller, `${req.service.typeName}/${req.method.name}`);
    const close = () => {
      watched.close();
      leave();
    };
    const watch: RevocationWatch = { signal: watched.signal, close };
    // Covers streams whose response nobody reads to its end.
    req.signal.addEventListener("abort", watch.close, { once: true });
    if (req.signal.aborted) watch.close();
    req.contextValues.set(revokedKey, watch.signal);
    try {
      const res = await next(req);
      if (res.stream) return { ...res, message: untilRevoked(res.message, watch) };
      watch.close();
      return res;
    } catch (thrown) {
      watch.close();
      throw thrown;
    }
  };
  return (next) => (req) => (req.stream ? whileAllowed(next, req) : next(req));
}

/** The function that interceptors wrap; the package has no name for it. */
type AnyFn = ReturnType<Interceptor>;
type AnyRequest = Parameters<AnyFn>[0];

async function* untilRevoked<T>(
  messages: AsyncIterable<T>,
  { signal, close }: RevocationWatch,
): AsyncIterable<T> {
  const iterator = messages[Symbol.asyncIterator]();
  let ended = false;
  try {
    for (;;) {
      signal.throwIfAborted();
      const step = await rejectOnAbort(iterator.next(), signal);
      if (step.done) {
        ended = true;
        return;
      }
      yield step.value;
    }
  } finally {
    close();
    // Not awaited: an operation that waits for an event answers only when one comes.
    if (!ended) iterator.return?.()?.catch(() => undefined);
  }
}

/**
 * Returns the step, or throws the reason of a signal that aborts first. A
 * listener for each: racing every step against one lasting promise would keep
 * them all in memory.
 */
function rejectOnAbort<T>(step: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    step.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
