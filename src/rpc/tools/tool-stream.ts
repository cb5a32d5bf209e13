import type { ConnectError } from "@connectrpc/connect";
import { endStreamFlag, endStreamFromJson } from "@connectrpc/connect/protocol-connect";
import { ENVELOPE_BYTES } from "../request/envelope.ts";
import type { LargeMessages } from "../response/large-message.ts";
import type { StreamPositions } from "../stream/stream-positions.ts";
import { MAX_RESULT_BYTES } from "./tool-result.ts";
import { MAX_WAIT_SECONDS } from "./tool-schema.ts";

/** Time without another message after which the answer is complete. */
const SETTLE_MS = 1_000;

/** Maximum bytes of the messages of an answer; the rest of the result is small. */
const MAX_MESSAGES_BYTES = MAX_RESULT_BYTES - 4_096;

/** Messages that were collected from a stream for a limited time. */
export interface Collected {
  readonly messages: readonly object[];
  /** The position of the last message, after which a next call continues; empty before the first message. */
  readonly next: string;
  /** True when the stream has ended, so there are no further messages. */
  readonly ended: boolean;
  /** Why the stream failed; absent if it did not. */
  readonly error?: ConnectError;
}

export interface CollectOptions {
  readonly positions: StreamPositions;
  /** The messages that the protocol layer leaves out; they are too large for a result. */
  readonly large: LargeMessages;
  /** The full name of the operation. */
  readonly operation: string;
  /** Position after which the stream continued; undefined when it began as the request says. */
  readonly after: string | undefined;
  readonly waitMs: number;
  /** Aborted when nobody waits for the answer. */
  readonly signal: AbortSignal;
  /** Default {@link SETTLE_MS}. */
  readonly settleMs?: number;
}

/**
 * Collects the messages of a stream until a new message is followed by a pause, the time is over, the stream has ended,
 * or the answer is full. A call that continues after `next` receives the rest.
 *
 * @param body the stream in the Connect protocol's form for JSON, each chunk one envelope
 */
export async function collectStream(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { positions, large, operation, after = "", waitMs, signal, settleMs = SETTLE_MS }: CollectOptions,
): Promise<Collected> {
  const present = PRESENTATIONS[operation] ?? AS_IT_IS;
  const over = Promise.withResolvers<undefined>();
  const end = () => over.resolve(undefined);
  // Wait for the position of the stream: without it the next call would miss messages sent in between.
  const tellsStart = present.tellsStart === true && after === "";
  let timer = setTimeout(end, tellsStart ? MAX_WAIT_SECONDS * 1000 : waitMs);
  let endsAt = performance.now() + waitMs;
  signal.addEventListener("abort", end, { once: true });
  const chunks = iteratorOf(body);
  const messages: object[] = [];
  let bytes = 0;
  let next = after;
  try {
    for (;;) {
      const step = await Promise.race([chunks.next(), over.promise]);
      if (step === undefined) return { messages, next, ended: false };
      if (step.done) return { messages, next, ended: true };
      const data = step.value.subarray(ENVELOPE_BYTES);
      if (((step.value[0] ?? 0) & endStreamFlag) !== 0) {
        const { error } = endStreamFromJson(data);
        return error ? { messages, next, ended: false, error } : { messages, next, ended: true };
      }
      const position = positions.take();
      const message = large.take()
        ? TOO_LARGE
        : present.message(JSON.parse(Buffer.from(data).toString("utf8")));
      bytes += Buffer.byteLength(JSON.stringify(message)) + 1;
      if (bytes > MAX_MESSAGES_BYTES && messages.length > 0) return { messages, next, ended: false };
      messages.push(message);
      next = position || next;
      const isNews = present.isNews(message, messages.length - 1);
      if (!isNews && !(tellsStart && messages.length === 1)) continue;
      clearTimeout(timer);
      if (!isNews) {
        endsAt = performance.now() + waitMs;
        timer = setTimeout(end, waitMs);
        continue;
      }
      timer = setTimeout(end, Math.min(settleMs, Math.max(0, endsAt - performance.now())));
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
    // Not awaited: an operation that waits for an event returns only when one arrives or it is aborted.
    chunks.return().catch(() => {});
  }
}

async function* iteratorOf(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void> {
  yield* body;
}

const TOO_LARGE = { leftOut: "larger than 1 MiB: read it by another way" };

// biome-ignore lint/suspicious/noExplicitAny: the messages of each operation, as JSON
type Json = any;

/** Formats the messages of an operation, and decides which of them complete an answer. */
interface Presentation {
  /** True if a stream that does not resume begins with its position. */
  readonly tellsStart?: boolean;
  message(json: Json): object;
  /** @param index position of the message in the answer */
  isNews(message: Json, index: number): boolean;
}

const AS_IT_IS: Presentation = { message: (json) => json, isNews: () => true };

const PRESENTATIONS: Readonly<Record<string, Presentation>> = {
  "service.v1.EventService/WatchEvents": {
    ...AS_IT_IS,
    tellsStart: true,
    // Messages about the stream itself carry its position.
    isNews: ({ operation, historyPruned }) =>
      operation !== "RESOURCE_OPERATION_UNSPECIFIED" || historyPruned !== undefined,
  },
  "service.v1.AgentService/WatchAgentExecution": {
    ...AS_IT_IS,
    tellsStart: true,
    // The run itself comes first, even when nothing has happened.
    isNews: (_, index) => index > 0,
  },
  "service.v1.WorkflowService/StreamActionLogs": {
    // A model reads text. A character that is split between pieces becomes U+FFFD.
    message: ({ data = "", ...piece }) => ({ ...piece, text: Buffer.from(data, "base64").toString("utf8") }),
    isNews: () => true,
  },
};
