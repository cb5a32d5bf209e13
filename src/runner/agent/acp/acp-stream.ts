import type { Writable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { AnyMessage, Stream } from "@agentclientprotocol/sdk";
import { LineReader, type OutputLine } from "../line-reader.ts";
import type { OpenRequests, RequestId } from "./acp-open-requests.ts";

/** Maximum size of a message; longer ones are dropped. Updates of several MiB are usual when a tool returns a file. */
const MAX_MESSAGE_BYTES = 33_554_432;

/** The listeners of an {@link AcpStream}. */
export interface AcpStreamListeners {
  /** Called when the program's input has taken a message. */
  onWritten(message: AnyMessage): void;
  /** Called for output that is no message of the protocol, with why not. */
  onUnreadable(why: string, text: string): void;
  /** Called when the program's input takes nothing for a time, while its output cannot be read any further. */
  onUnread(): void;
  /** Resolves when the next message may be read. */
  waitForRoom(): Promise<void>;
}

/**
 * The message stream between a program and the protocol's library, with one JSON object per line. It replaces the
 * library's own stream, which reads ahead without a limit, and ends at a message that is too large.
 */
export class AcpStream {
  readonly stream: Stream;
  readonly #listeners: AcpStreamListeners;
  readonly #requests: OpenRequests;
  readonly #unreadMs: number;
  readonly #lines = new LineReader(MAX_MESSAGE_BYTES);
  readonly #stdin = Promise.withResolvers<Writable | undefined>();
  #controller: ReadableStreamDefaultController<AnyMessage> | undefined;

  /**
   * @param requests counts the requests that are read, until their answers are written
   * @param unreadMs time after which the listener learns that the program reads nothing, in milliseconds
   */
  constructor(listeners: AcpStreamListeners, requests: OpenRequests, unreadMs: number) {
    this.#listeners = listeners;
    this.#requests = requests;
    this.#unreadMs = unreadMs;
    this.stream = {
      readable: new ReadableStream<AnyMessage>({
        start: (controller) => {
          this.#controller = controller;
        },
        cancel: () => {
          this.#controller = undefined;
        },
      }),
      writable: new WritableStream<AnyMessage>({ write: (message) => this.#write(message) }),
    };
  }

  /** Sets the program's standard input; what was written before waits for it. */
  open(stdin: Writable): void {
    // Nobody reads answers any more: requests that wait for people must not hold up the rest of the output.
    stdin.once("close", () => this.#requests.end());
    this.#stdin.resolve(stdin);
  }

  /** Reads the program's output; resolves when more may follow. */
  async read(bytes: Buffer): Promise<void> {
    for (const line of this.#lines.write(bytes)) {
      await this.#requests.waitForRoom();
      this.#line(line);
    }
    // The library handles what it got before more is read.
    await nextTurn();
    await this.#listeners.waitForRoom();
  }

  /** Ends both directions: the program is gone. */
  end(): void {
    const rest = this.#lines.end();
    if (rest) this.#line(rest);
    this.#stdin.resolve(undefined);
    this.#requests.end();
    this.#controller?.close();
    this.#controller = undefined;
  }

  /** Closes the program's standard input. */
  async closeInput(): Promise<void> {
    (await this.#stdin.promise)?.end();
  }

  #line(line: OutputLine): void {
    if (line.kind === "too-long") {
      this.#listeners.onUnreadable(
        `a message of ${line.lengthBytes} bytes was dropped: ${MAX_MESSAGE_BYTES} is the most`,
        "",
      );
      return;
    }
    const text = line.bytes.toString();
    if (text.trim() === "") return;
    const message = parseMessage(text);
    if (!message) {
      this.#listeners.onUnreadable("a line is no message of the protocol", text);
      return;
    }
    if ("method" in message && "id" in message) {
      // Only of a program that takes no answers.
      if (this.#requests.isFull) return;
      this.#requests.add(message.id, line.bytes.length);
    }
    this.#controller?.enqueue(message);
  }

  async #write(message: AnyMessage): Promise<void> {
    try {
      if (await this.#writeLine(`${JSON.stringify(message)}\n`)) this.#listeners.onWritten(message);
    } finally {
      if (!("method" in message)) this.#requests.delete(message.id);
    }
  }

  /** @returns whether the program's input has taken it */
  async #writeLine(line: string): Promise<boolean> {
    const stdin = await this.#stdin.promise;
    if (!stdin || stdin.writableEnded || stdin.destroyed) return false;
    const timer = setInterval(() => {
      if (this.#requests.isFull) this.#listeners.onUnread();
    }, this.#unreadMs).unref();
    try {
      return await new Promise<boolean>((resolve) => stdin.write(line, (error) => resolve(!error)));
    } finally {
      clearInterval(timer);
    }
  }
}

/** Returns the message of a line; undefined for anything that the library would stumble over, or quote in its answer. */
function parseMessage(text: string): AnyMessage | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null || !("jsonrpc" in value) || value.jsonrpc !== "2.0")
    return undefined;
  if ("id" in value && !isRequestId(value.id)) return undefined;
  const isMessage = "method" in value ? typeof value.method === "string" : "id" in value;
  return isMessage ? (value as AnyMessage) : undefined;
}

function isRequestId(id: unknown): id is RequestId {
  return id === null || typeof id === "string" || typeof id === "number";
}
