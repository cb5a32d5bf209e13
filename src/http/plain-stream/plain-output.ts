import type { ConnectError } from "@connectrpc/connect";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { endStreamFlag, endStreamFromJson, errorToJson } from "@connectrpc/connect/protocol-connect";
import type { OutputAccount } from "../../rpc/access/call-record.ts";
import { ENVELOPE_BYTES } from "../../rpc/request/envelope.ts";
import { JSON_OPTIONS } from "../../rpc/request/json-options.ts";
import { type EncodedMessage, encodeLarge, type LargeMessages } from "../../rpc/response/large-message.ts";
import type { StreamPositions } from "../../rpc/stream/stream-positions.ts";
import { inTurns } from "../../rpc/turns.ts";
import { isGone } from "../../unary/unary-call.ts";
import { piecesOf, writePieces } from "../../unary/write-pieces.ts";
import type { HttpResponse } from "../connection/listener.ts";
import type { PlainForm } from "./plain-request.ts";

/** Silence after which a stream sends a keep-alive: proxies close connections after 30 to 60 seconds of silence. */
const BEAT_MS = 15_000;

/** The texts that a form writes around messages. The JSON of a message has no line break, so it is one line. */
interface Writing {
  readonly beat: string;
  message(position: string): readonly [before: string, after: string];
  failure(error: string): string;
  readonly end: string;
}

const WRITINGS: Readonly<Record<PlainForm, Writing>> = {
  "application/x-ndjson": {
    beat: "\n",
    message: () => ["", "\n"],
    failure: (error) => `{"error":${error}}\n`,
    end: "",
  },
  "text/event-stream": {
    beat: ":\n\n",
    message: (position) => [`id: ${position}\ndata: `, "\n\n"],
    // Not `error`: browsers use that name for lost connections.
    failure: (error) => `event: failure\ndata: ${error}\n\n`,
    end: "event: end\ndata: {}\n\n",
  },
};

/** Writes one stream as lines or as server-sent events, at the pace of its client. */
export class PlainOutput {
  readonly #res: HttpResponse;
  readonly #form: PlainForm;
  readonly #output: OutputAccount | undefined;
  readonly #beatMs: number;
  /** Resolves when the last write is done, so that nothing is written into the middle of a message. */
  #last: Promise<boolean> = Promise.resolve(true);
  #beats: NodeJS.Timeout | undefined;

  /** @param beatMs silence in milliseconds after which a keep-alive is sent */
  constructor(res: HttpResponse, form: PlainForm, output: OutputAccount | undefined, beatMs = BEAT_MS) {
    this.#res = res;
    this.#form = form;
    this.#output = output;
    this.#beatMs = beatMs;
  }

  /** Sends the headers, once, before the first message, which may come late. */
  begin(): void {
    const res = this.#res;
    if (res.headersSent || isGone(res)) return;
    res.statusCode = 200;
    res.setHeader("content-type", this.#form);
    res.setHeader("cache-control", "no-store");
    // Tells nginx not to buffer events into blocks of several KiB.
    res.setHeader("x-accel-buffering", "no");
    // Both response classes have the method, but only one declares it in its types.
    (res as { flushHeaders(): void }).flushHeaders();
    res.once("close", () => clearTimeout(this.#beats));
    this.#beatLater();
  }

  /**
   * Writes the messages that a protocol handler streams in envelopes. If the stream fails before it has begun, the
   * caller must respond.
   *
   * @param large the messages that the protocol layer leaves out
   * @returns the error of a stream of which nothing was sent
   */
  async write(
    { body }: UniversalServerResponse,
    positions: StreamPositions,
    large: LargeMessages,
  ): Promise<ConnectError | undefined> {
    const writing = WRITINGS[this.#form];
    // Each chunk is one envelope.
    for await (const chunk of body ?? []) {
      const data = chunk.subarray(ENVELOPE_BYTES);
      if (((chunk[0] ?? 0) & endStreamFlag) !== 0) {
        const { error } = endStreamFromJson(data);
        if (error && !this.#res.headersSent) return error;
        this.begin();
        const end = error ? writing.failure(JSON.stringify(errorToJson(error, JSON_OPTIONS))) : writing.end;
        await this.#send(Buffer.from(end));
        break;
      }
      this.begin();
      const left = large.take();
      const message = left ? await encodeLarge(left, false) : { lengthBytes: data.length, pieces: [data] };
      if (!(await this.#sendMessage(message, writing.message(positions.take())))) return undefined;
    }
    await this.#last;
    clearTimeout(this.#beats);
    this.#res.end();
    return undefined;
  }

  #sendMessage(message: EncodedMessage, [before, after]: readonly [string, string]): Promise<boolean> {
    const pieces = function* () {
      yield Buffer.from(before);
      for (const piece of message.pieces) yield* piecesOf(piece);
      yield Buffer.from(after);
    };
    const lengthBytes = Buffer.byteLength(before) + message.lengthBytes + Buffer.byteLength(after);
    return this.#enqueue(lengthBytes, inTurns(pieces()));
  }

  #send(bytes: Uint8Array): Promise<boolean> {
    return bytes.length === 0 ? this.#last : this.#enqueue(bytes.length, [bytes]);
  }

  #enqueue(lengthBytes: number, pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<boolean> {
    clearTimeout(this.#beats);
    this.#output?.hold(lengthBytes);
    this.#last = this.#last.then(async (isThere) => {
      const isSent = isThere && (await writePieces(this.#res, pieces, this.#output));
      if (isSent) this.#beatLater();
      return isSent;
    });
    return this.#last;
  }

  #beatLater(): void {
    clearTimeout(this.#beats);
    if (this.#res.writableEnded) return;
    const beat = () => void this.#send(Buffer.from(WRITINGS[this.#form].beat));
    this.#beats = setTimeout(beat, this.#beatMs).unref();
  }
}
