import { create, type DescMessage, type MessageShape, ScalarType, toJsonString } from "@bufbuild/protobuf";
import { type ContextKey, createContextKey, type Interceptor } from "@connectrpc/connect";
import { deterministicPieces } from "../deterministic-pieces.ts";
import { exchangeBytes } from "../request/byte-fields.ts";
import { JSON_OPTIONS } from "../request/json-options.ts";
import { runInTurns } from "../turns.ts";

/** Size of the bytes fields of a message above which it is passed around the protocol layer. */
const LARGE_BYTES = 1024 * 1024;

/** Number of bytes that are written as one piece of base64; a multiple of three, so that only the last piece is padded. */
const BASE64_BYTES = 96 * 1024;

/** A message of a stream that the protocol layer has not encoded. */
export interface LargeMessage {
  readonly schema: DescMessage;
  readonly message: MessageShape<DescMessage>;
}

/**
 * Passes large messages of a stream around the protocol layer, which would encode ten images of
 * 4 MiB at once: half a second in binary, seven in JSON. The protocol layer encodes an empty message
 * instead; the message that is taken after it has written an envelope belongs to that envelope.
 */
export class LargeMessages {
  #next: LargeMessage | undefined;

  put(message: LargeMessage): void {
    this.#next = message;
  }

  /** Returns the large message of the last envelope; undefined if that envelope has its own content. */
  take(): LargeMessage | undefined {
    const taken = this.#next;
    this.#next = undefined;
    return taken;
  }
}

/** The context key of the large messages of a call; unset if the protocol layer must encode all messages. */
export const largeMessagesKey: ContextKey<LargeMessages | undefined> = createContextKey<
  LargeMessages | undefined
>(undefined, { description: "large messages" });

/** The outermost interceptor of streams: the messages that it returns are only encoded afterwards. */
export const passLargeMessages: Interceptor = (next) => async (req) => {
  const res = await next(req);
  const large = req.contextValues.get(largeMessagesKey);
  if (!res.stream || !large || !canHoldBytes(res.method.output)) return res;
  return { ...res, message: withoutLarge(res.method.output, res.message, large) };
};

async function* withoutLarge<T extends MessageShape<DescMessage>>(
  schema: DescMessage,
  messages: AsyncIterable<T>,
  large: LargeMessages,
): AsyncIterable<T> {
  for await (const message of messages) {
    if (!isLarge(schema, message)) {
      yield message;
      continue;
    }
    large.put({ schema, message });
    yield create(schema) as T;
  }
}

const known = new Map<DescMessage, boolean>();

/** Returns whether a message, or one that it can contain, has a field of bytes. */
function canHoldBytes(schema: DescMessage): boolean {
  let can = known.get(schema);
  if (can === undefined) {
    const reached = new Set([schema]);
    for (const { fields } of reached) for (const { message } of fields) if (message) reached.add(message);
    can = [...reached].some(({ fields }) => fields.some(({ scalar }) => scalar === ScalarType.BYTES));
    known.set(schema, can);
  }
  return can;
}

function isLarge(schema: DescMessage, message: MessageShape<DescMessage>): boolean {
  let bytes = 0;
  exchangeBytes(schema, message, (value) => {
    bytes += value.length;
    return value;
  });
  return bytes > LARGE_BYTES;
}

/** A large message as it is sent. */
export interface EncodedMessage {
  readonly lengthBytes: number;
  /** Can be read once. Large parts are created on demand. */
  readonly pieces: Iterable<Uint8Array>;
}

/** Encodes a large message as the protocol layer would, yielding to the event loop. JSON changes the message. */
export async function encodeLarge(
  { schema, message }: LargeMessage,
  isBinary: boolean,
): Promise<EncodedMessage> {
  if (!isBinary) return encodeJson(schema, message);
  const pieces = await runInTurns(deterministicPieces(schema, message));
  return { lengthBytes: pieces.reduce((sum, { length }) => sum + length, 0), pieces };
}

/** Writes the message as JSON, with marks instead of large bytes. */
function encodeJson(schema: DescMessage, message: MessageShape<DescMessage>): EncodedMessage {
  const mark = crypto.getRandomValues(new Uint8Array(24));
  const taken: Uint8Array[] = [];
  exchangeBytes(schema, message, (value) => {
    if (value.length < BASE64_BYTES) return value;
    taken.push(value);
    return mark;
  });
  const texts = toJsonString(schema, message, JSON_OPTIONS).split(Buffer.from(mark).toString("base64"));
  const lengthBytes =
    texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0) +
    taken.reduce((sum, { length }) => sum + Math.ceil(length / 3) * 4, 0);
  return { lengthBytes, pieces: jsonPieces(texts, taken) };
}

function* jsonPieces(texts: readonly string[], taken: readonly Uint8Array[]): Generator<Uint8Array> {
  for (const [index, text] of texts.entries()) {
    yield Buffer.from(text);
    const bytes = taken[index] ?? new Uint8Array();
    for (let start = 0; start < bytes.length; start += BASE64_BYTES) {
      const { buffer, byteOffset } = bytes;
      const length = Math.min(BASE64_BYTES, bytes.length - start);
      yield Buffer.from(Buffer.from(buffer, byteOffset + start, length).toString("base64"), "latin1");
    }
  }
}
