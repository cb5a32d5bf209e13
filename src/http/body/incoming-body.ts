import { ConnectError } from "@connectrpc/connect";
import { bodyAborted, deadlinePassed } from "../../rpc/request/request-failure.ts";
import type { HttpRequest } from "../connection/listener.ts";

/**
 * Yields the body as it arrives, until the request's deadline. The protocol layer
 * checks the deadline only when the body is complete, and would wait for a slow
 * one until the listener cuts it.
 *
 * @param timeoutMs undefined waits as long as the listener does
 * @throws ConnectError deadline_exceeded or canceled
 */
export async function* incomingBody(
  req: HttpRequest,
  timeoutMs: number | undefined,
): AsyncGenerator<Uint8Array, void> {
  // Leaving early must not destroy the socket: the response still has to be sent on it.
  const chunks: AsyncIterator<Uint8Array> = req.iterator({ destroyOnReturn: false });
  const deadline = Promise.withResolvers<never>();
  deadline.promise.catch(() => {});
  const expire = () => deadline.reject(deadlinePassed());
  const timer = timeoutMs === undefined ? undefined : setTimeout(expire, timeoutMs);
  try {
    for (;;) {
      const chunk = await Promise.race([chunks.next(), deadline.promise]);
      if (chunk.done) return;
      yield chunk.value;
    }
  } catch (cause) {
    if (cause instanceof ConnectError) throw cause;
    throw bodyAborted(cause);
  } finally {
    clearTimeout(timer);
    void chunks.return?.();
  }
}
