import { bodyTooLarge } from "../../rpc/error/error.ts";
import type { BodyAccount } from "../../rpc/request/arriving-bytes.ts";
import { COMPRESSED_FLAG, ENVELOPE_BYTES, envelopeHead } from "../../rpc/request/envelope.ts";
import { freeChunk } from "../../rpc/request/free-chunk.ts";
import type { RequestReading } from "../../rpc/request/request-reading.ts";
import type { HttpRequest } from "../connection/listener.ts";
import { ByteSource } from "./byte-source.ts";
import { unpack } from "./unpack.ts";

/** The flag of an envelope that holds no message but ends the body, in Connect's streams and in gRPC-Web. */
const END_FLAGS: readonly (readonly [contentType: RegExp, flag: number])[] = [
  [/^application\/connect\+/i, 0x02],
  [/^application\/grpc-web/i, 0x80],
];

/** Connect's unary calls: the body is the message. */
const WHOLE = /^application\/(?:json|proto)(?:;|$)/i;

/** The form of the messages of a request. */
export interface MessageForm {
  readonly isBinary: boolean;
  readonly isEnveloped: boolean;
  readonly isCompressed: boolean;
  /** 0 where the protocol has none. */
  readonly endFlag: number;
  /** Releases the memory of a chunk of the body. */
  readonly free: (chunk: Uint8Array) => void;
}

/**
 * Returns the form of a request's messages, and removes the headers that do not
 * apply to the body that the protocol layer gets: that body is not compressed, and
 * contains an empty message in place of a large one.
 */
export function messageForm(req: HttpRequest): MessageForm {
  const { headers } = req;
  const contentType = headers["content-type"] ?? "";
  const isEnveloped = !WHOLE.test(contentType);
  const header = isEnveloped
    ? /^application\/connect\+/i.test(contentType)
      ? "connect-content-encoding"
      : "grpc-encoding"
    : "content-encoding";
  const isCompressed = headers[header] === "gzip";
  if (!isEnveloped) {
    if (isCompressed) delete headers[header];
    delete headers["content-length"];
  }
  return {
    isBinary: !/json/i.test(contentType),
    isEnveloped,
    isCompressed,
    endFlag: END_FLAGS.find(([form]) => form.test(contentType))?.[1] ?? 0,
    free: (chunk) => freeChunk(req, chunk),
  };
}

/**
 * Passes a request's body to the protocol layer as whole messages. They are
 * unpacked and checked against the limits first, since the layer parses every
 * message it gets.
 *
 * @param parseLarge parses large messages elsewhere; the protocol layer gets an
 *   empty message instead
 * @param lengthBytes the length in the headers; undefined without one
 * @param hold counts the bytes of the body; released once the requests are read,
 *   unless they share its memory
 * @throws ConnectError BODY_TOO_LARGE, BODY_TOO_COMPLEX, BODY_BUDGET_EXCEEDED
 */
export async function* requestMessages(
  chunks: AsyncIterable<Uint8Array>,
  lengthBytes: number | undefined,
  form: MessageForm,
  requests: RequestReading,
  parseLarge: (bytes: Uint8Array) => Promise<void>,
  hold: BodyAccount,
): AsyncGenerator<Uint8Array, void> {
  const { limitBytes } = requests;
  const source = new ByteSource(chunks, form.free, hold);
  const read = async (bytes: Uint8Array<ArrayBuffer>, isCompressed: boolean): Promise<Uint8Array> => {
    let message: Uint8Array = bytes;
    if (isCompressed) {
      message = await unpack(bytes, limitBytes, hold);
      hold.set(message.length);
    }
    hold.arrived();
    if (requests.isLarge(message)) {
      await parseLarge(message);
      return new Uint8Array();
    }
    requests.count(form.isBinary, message);
    return message;
  };
  try {
    if (!form.isEnveloped) {
      if ((lengthBytes ?? 0) > limitBytes) throw bodyTooLarge(limitBytes);
      source.begin();
      const bytes = await (lengthBytes === undefined ? source.rest(limitBytes) : source.message(lengthBytes));
      yield await read(bytes, form.isCompressed);
      return;
    }
    for (;;) {
      const head = await source.take(ENVELOPE_BYTES);
      if (head.length === 0) return;
      const view = new DataView(head.buffer);
      const flags = head[0] as number;
      const length = head.length === ENVELOPE_BYTES ? view.getUint32(1) : 0;
      if (length > limitBytes) throw bodyTooLarge(limitBytes);
      source.begin();
      const data = await source.message(length);
      // The protocol layer refuses incomplete messages, but parses messages with unknown flags.
      const isWhole = head.length === ENVELOPE_BYTES && data.length === length;
      const isPacked = (flags & COMPRESSED_FLAG) !== 0;
      if (!isWhole || (flags & form.endFlag) !== 0 || (isPacked && !form.isCompressed)) {
        hold.arrived();
        yield head;
        yield data;
        continue;
      }
      const message = await read(data, isPacked);
      yield envelopeHead(message.length);
      yield message;
    }
  } finally {
    // A call may continue long after its request was read. Large `bytes` fields share the body's memory.
    if (!requests.hasLargeBytes) hold.release();
    source.close();
  }
}
