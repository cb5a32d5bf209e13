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

/** A stream that was open for so long, in milliseconds, had reached the server, also where it sent nothing for hours. */
const REACHED_MS = 5_000;

export interface WatchOptions extends Omit<CallOptions, "timeoutMs"> {
  /** For how many milliseconds an interrupted stream is opened again; by default that of the client. */
  readonly retryForMs?: number;
  /** Is called with each interruption, before the stream is opened again. */
  readonly onInterrupted?: (error: ConnectError) => void;
}

/**
 * Yields the messages of a stream. When it is interrupted it is opened again behind the last message that was yielded:
 * none is lost or repeated. Ends when the stream does, or without an error when the signal is aborted.
 *
 * @throws ConnectError when the server refuses the stream, or could not be reached for too long; TypeError when the
 *   operation is none whose streams resume
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
          // What was received before is still read then.
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

/** Returns the error of a stream, as `unavailable` where its connection has ended within a message. */
function asInterruption(thrown: unknown): ConnectError {
  const error = ConnectError.from(thrown);
  // Only the client's own protocol says so, without a detail.
  const isIncomplete = error.code === Code.InvalidArgument && error.details.length === 0;
  return isIncomplete ? new ConnectError(error.rawMessage, Code.Unavailable) : error;
}
