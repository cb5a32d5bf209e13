import {
  clone,
  create,
  type DescMessage,
  type DescMethodServerStreaming,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { type CallOptions, Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createResumption } from "./resumption.ts";
import { isTemporary, pause, waitMsAfter } from "./retry.ts";

/** A stream that was open for this many milliseconds has reached the server, even if it received nothing. */
const REACHED_MS = 5_000;

export interface WatchOptions extends Omit<CallOptions, "timeoutMs"> {
  /** How many milliseconds an interrupted stream is retried; default the client's. */
  readonly retryForMs?: number;
  /** Called at each interruption, before the stream is opened again. */
  readonly onInterrupted?: (error: ConnectError) => void;
}

/**
 * Yields the messages of a stream. After an interruption the stream is opened again after the last yielded message,
 * so none is lost or repeated. Ends when the stream does, or without an error when the signal is aborted.
 *
 * @throws ConnectError when the server rejects the stream, or was unreachable for too long; TypeError for an
 * operation whose streams cannot be resumed
 */
export async function* watchStream<I extends DescMessage, O extends DescMessage>(
  transport: Transport,
  method: DescMethodServerStreaming<I, O>,
  request: MessageInitShape<I>,
  options: WatchOptions & { readonly retryForMs: number },
): AsyncGenerator<MessageShape<O>, void> {
  const asked = clone(method.input, create(method.input, request));
  const resumption = createResumption<MessageShape<I>, MessageShape<O>>(method, asked);
  const leaving = new AbortController();
  const leave = () => leaving.abort();
  const { signal, retryForMs, onInterrupted } = options;
  signal?.addEventListener("abort", leave);
  if (signal?.aborted) leave();
  let failures = 0;
  let failingSince = 0;
  try {
    while (!leaving.signal.aborted) {
      let interruption = new ConnectError("the stream has ended early", Code.Unavailable);
      let openedAt = Number.POSITIVE_INFINITY;
      try {
        const req = (async function* () {
          yield asked as MessageInitShape<I>;
        })();
        const { headers, contextValues } = options;
        const res = await transport.stream(method, leaving.signal, undefined, headers, req, contextValues);
        options.onHeader?.(res.header);
        openedAt = performance.now();
        for await (const message of res.message) {
          // Messages that were already received are still read then.
          if (leaving.signal.aborted) return;
          const before = resumption.position();
          const isNew = resumption.accept(message);
          if (resumption.position() !== before) failures = 0;
          if (isNew) yield message;
        }
        options.onTrailer?.(res.trailer);
        if (resumption.isComplete()) return;
      } catch (thrown) {
        if (leaving.signal.aborted) return;
        interruption = asInterruption(thrown);
        if (!isTemporary(interruption)) throw interruption;
      }
      const now = performance.now();
      if (now - openedAt >= REACHED_MS) failures = 0;
      if (failures === 0) failingSince = now;
      failures += 1;
      const waitMs = waitMsAfter(interruption, failures);
      if (now - failingSince + waitMs > retryForMs) throw interruption;
      onInterrupted?.(interruption);
      resumption.resume(asked);
      await pause(waitMs, leaving.signal);
    }
  } finally {
    leave();
    signal?.removeEventListener("abort", leave);
  }
}

/** Returns the error of a stream, as `unavailable` when its connection ended within a message. */
function asInterruption(thrown: unknown): ConnectError {
  const error = ConnectError.from(thrown);
  // Only the client's own protocol implementation reports this, without a detail.
  const isIncomplete = error.code === Code.InvalidArgument && error.details.length === 0;
  return isIncomplete ? new ConnectError(error.rawMessage, Code.Unavailable) : error;
}
