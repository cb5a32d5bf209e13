import { once } from "node:events";
import { createServer, get, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "@jest/globals";
import { enveloped } from "../../rpc/request/envelope.ts";
import { LargeMessages } from "../../rpc/response/large-message.ts";
import { StreamPositions } from "../../rpc/stream/stream-positions.ts";
import { PlainOutput } from "./plain-output.ts";
import type { PlainForm } from "./plain-request.ts";

const END = enveloped(Buffer.from("{}"), 2);

/** Counts what is held for a client. */
function account() {
  let held = 0;
  return {
    held: () => held,
    charge() {},
    enter: () => undefined,
    enlarge: () => undefined,
    leave() {},
    hold(bytes: number) {
      held += bytes;
    },
    take(bytes: number) {
      held -= bytes;
    },
  };
}

/** Writes a stream whose messages the test sends, and reads it until a text has arrived. */
async function exchange(form: PlainForm, beatMs: number) {
  const output = account();
  const positions = new StreamPositions(undefined);
  const waiting: PromiseWithResolvers<Uint8Array | undefined>[] = [];
  let asked = Promise.withResolvers<void>();
  async function* body() {
    for (;;) {
      const next = Promise.withResolvers<Uint8Array | undefined>();
      waiting.push(next);
      asked.resolve();
      const chunk = await next.promise;
      if (!chunk) return;
      yield chunk;
    }
  }
  const server = createServer((_, res) => {
    const plain = new PlainOutput(res, form, output, beatMs);
    plain.begin();
    void plain.write({ status: 200, body: body() }, positions, new LargeMessages());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const [res] = (await once(get({ port: (server.address() as AddressInfo).port }), "response")) as [
    IncomingMessage,
  ];
  let text = "";
  res.setEncoding("utf8").on("data", (data: string) => {
    text += data;
    res.emit("more");
  });
  return {
    output,
    text: () => text,
    async until(expected: string) {
      while (!text.includes(expected)) await once(res, "more");
    },
    async send(chunk: Uint8Array, position = "") {
      await asked.promise;
      asked = Promise.withResolvers();
      positions.put(position);
      waiting.shift()?.resolve(chunk);
    },
    async end(last = END) {
      await asked.promise;
      waiting.shift()?.resolve(last);
      if (!res.readableEnded) await once(res, "end");
      server.close();
      server.closeAllConnections();
    },
  };
}

describe.each<[PlainForm, string, string]>([
  ["text/event-stream", ":\n\n", 'id: 7\ndata: {"a":1}\n\n'],
  ["application/x-ndjson", "\n", '{"a":1}\n'],
])("a stream as %s", (form, beat, message) => {
  test("shows in its silence that it lives, before its first message and after it", async () => {
    const stream = await exchange(form, 1);
    await stream.until(beat.repeat(2));
    await stream.send(enveloped(Buffer.from('{"a":1}')), "7");
    await stream.until(message + beat.repeat(2));
    await stream.end();
    expect(stream.output.held()).toBe(0);
  });

  test("has no beat inside a message, however long that takes", async () => {
    const long = JSON.stringify({ a: "x".repeat(4 * 1024 * 1024) });
    const stream = await exchange(form, 1);
    await stream.send(enveloped(Buffer.from(long)), "7");
    await stream.end();
    expect(stream.text()).toContain(message.replace('{"a":1}', long));
    expect(stream.output.held()).toBe(0);
  });
});

test("an error once a stream has begun is its last message", async () => {
  const failed = enveloped(Buffer.from('{"error":{"code":"unavailable","message":"later"}}'), 2);
  const stream = await exchange("application/x-ndjson", 60_000);
  await stream.end(failed);
  expect(stream.text()).toBe('{"error":{"code":"unavailable","message":"later"}}\n');
});
