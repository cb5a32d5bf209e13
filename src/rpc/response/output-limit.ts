import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { longTextsKey, shortBytesOf } from "../../services/call/short-reads.ts";
import { shuttingDown } from "../access/authorization.ts";
import { callRecordKey, type OutputAccount } from "../access/call-record.ts";

/**
 * Makes reads wait until their responses may be produced. By then their bodies
 * have arrived, so a request that arrives slowly occupies no slot.
 */
export function outputLimit(draining: AbortSignal): Interceptor {
  return (next) => (req) => {
    if (req.stream || req.method.idempotency !== Idempotency.NO_SIDE_EFFECTS) return next(req);
    const { output, operation } = req.contextValues.get(callRecordKey);
    if (!output) return next(req);
    const shortBytes = shortBytesOf(req.method, req.message);
    if (shortBytes !== undefined) {
      req.contextValues.set(longTextsKey, () => {
        const room = output.enlarge();
        return room && waitForOutputSpace(output, room, req.signal, draining);
      });
    }
    const room = output.enter(operation, shortBytes);
    if (!room) return next(req);
    return waitForOutputSpace(output, room, req.signal, draining).then(() => next(req));
  };
}

/**
 * Waits for the promise of {@link OutputAccount.enter} or `enlarge`, no longer than the call
 * lasts and the server accepts calls.
 *
 * @param signal aborted when the deadline passes or the client leaves
 * @throws ConnectError deadline_exceeded, canceled, or UNAVAILABLE when the
 *   server shuts down
 */
export async function waitForOutputSpace(
  output: OutputAccount,
  room: Promise<void>,
  signal: AbortSignal,
  draining: AbortSignal,
): Promise<void> {
  const ended = Promise.withResolvers<never>();
  const onEnd = () => ended.reject(ConnectError.from(signal.reason, Code.Canceled));
  const onDrain = () => ended.reject(shuttingDown());
  signal.addEventListener("abort", onEnd);
  draining.addEventListener("abort", onDrain);
  if (signal.aborted) onEnd();
  if (draining.aborted) onDrain();
  try {
    await Promise.race([room, ended.promise]);
  } finally {
    signal.removeEventListener("abort", onEnd);
    draining.removeEventListener("abort", onDrain);
    output.leave();
  }
}
