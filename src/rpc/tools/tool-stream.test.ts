import { describe, expect, test } from "@jest/globals";
import { enveloped } from "../request/envelope.ts";
import { LargeMessages } from "../response/large-message.ts";
import { StreamPositions } from "../stream/stream-positions.ts";
import { MAX_RESULT_BYTES } from "./tool-result.ts";
import { collectStream } from "./tool-stream.ts";

const EVENTS = "service.v1.EventService/WatchEvents";
const LOGS = "service.v1.WorkflowService/StreamActionLogs";
const FAR_MS = 600_000;

const message = (value: object) => enveloped(Buffer.from(JSON.stringify(value)));
const event = (sequence: number, operation = "RESOURCE_OPERATION_CREATE") => ({ operation, sequence });
const START = "RESOURCE_OPERATION_UNSPECIFIED";
const END = enveloped(Buffer.from("{}"), 2);
const FAILED = enveloped(Buffer.from('{"error":{"code":"unavailable","message":"later"}}'), 2);

/** A stream that sends messages with their positions, and then hangs until it is left. */
function stream(messages: readonly (readonly [position: string, chunk: Uint8Array])[]) {
  const positions = new StreamPositions(undefined);
  async function* body() {
    for (const [position, chunk] of messages) {
      if (position !== "") positions.put(position);
      yield chunk;
    }
    if (messages.at(-1)?.[0] !== "") await new Promise(() => {});
  }
  const large = new LargeMessages();
  const collect = (more: object = {}) =>
    collectStream(body(), {
      ...{ positions, large, operation: EVENTS, after: undefined, waitMs: FAR_MS, settleMs: 1 },
      signal: new AbortController().signal,
      ...more,
    });
  return { collect, large };
}

describe("what a stream sends for a while", () => {
  test("is answered once something has come and then nothing more", async () => {
    const { collect } = stream([
      ["4", message(event(4, START))],
      ["5", message(event(5))],
      ["6", message(event(6))],
    ]);
    const { messages, next, ended } = await collect();
    expect([messages.length, next, ended]).toEqual([3, "6", false]);
  });

  test("is its position, when nothing comes", async () => {
    const { collect } = stream([["4", message(event(4, START))]]);
    expect(await collect({ waitMs: 1 })).toEqual({ messages: [event(4, START)], next: "4", ended: false });
  });

  test("is nothing when nothing comes behind where it resumes, and that position stays", async () => {
    const { collect } = stream([]);
    expect(await collect({ waitMs: 1, after: "9" })).toEqual({ messages: [], next: "9", ended: false });
  });

  test("tells that the stream has ended", async () => {
    const { collect } = stream([
      ["5", message(event(5))],
      ["", END],
    ]);
    expect(await collect()).toEqual({ messages: [event(5)], next: "5", ended: true });
  });

  test("tells why it broke off, after what came before", async () => {
    const { collect } = stream([
      ["5", message(event(5))],
      ["", FAILED],
    ]);
    const { error, ...rest } = await collect();
    expect(rest).toEqual({ messages: [event(5)], next: "5", ended: false });
    expect(error?.rawMessage).toBe("later");
  });

  test("ends when nobody waits any more", async () => {
    const gone = new AbortController();
    const collecting = stream([]).collect({ signal: gone.signal });
    gone.abort();
    expect(await collecting).toEqual({ messages: [], next: "", ended: false });
  });

  test("has room in a result, and goes on behind what had", async () => {
    const long = (sequence: number) => ({ ...event(sequence), text: "x".repeat(MAX_RESULT_BYTES / 3) });
    const { collect } = stream([1, 2, 3].map((each) => [String(each), message(long(each))] as const));
    const { messages, next, ended } = await collect();
    expect([messages.length, next, ended]).toEqual([2, "2", false]);
  });

  test("has no message of more than a MiB", async () => {
    const { collect, large } = stream([["1", message({})]]);
    large.put({} as never);
    const { messages, next } = await collect();
    expect([messages, next]).toEqual([[{ leftOut: "larger than 1 MiB: read it by another way" }], "1"]);
  });

  test("is text, where a step printed it", async () => {
    const data = Buffer.from("grüße").toString("base64");
    const { collect } = stream([["1.0.7", message({ stepIndex: 0, attempt: 1, offset: "0", data })]]);
    const { messages } = await collect({ operation: LOGS });
    expect(messages).toEqual([{ stepIndex: 0, attempt: 1, offset: "0", text: "grüße" }]);
  });
});
