import { expect, test } from "@jest/globals";
import { enveloped } from "../request/envelope.ts";
import { createToolCalls } from "./tool-call.ts";
import type { Tool } from "./tools.ts";

const WATCH = {
  route: { operation: "service.v1.EventService/WatchEvents" },
  isReadOnly: true,
  isStream: true,
} as Tool;

const message = (value: object) => enveloped(Buffer.from(JSON.stringify(value)));
const END = enveloped(Buffer.from("{}"), 2);

test("a message of a stream that has no room even with its texts cut keeps nobody from going on behind it", async () => {
  const texts = Array.from({ length: 2_000 }, () => "x".repeat(100));
  const callTool = createToolCalls({
    async callJson(_, { stream }) {
      stream?.positions.put("5");
      const header = new Headers({ "content-type": "application/connect+json" });
      async function* body() {
        yield message({ operation: "RESOURCE_OPERATION_CREATE", texts });
        yield END;
      }
      return { status: 200, header, body: body() };
    },
    draining: new AbortController().signal,
    report() {},
  });
  const { value, isError, isShortened } = await callTool({
    tool: WATCH,
    args: {},
    authorization: undefined,
    record: { requestId: "r", operation: "mcp" },
    signal: new AbortController().signal,
  });
  expect([isError, isShortened]).toEqual([false, true]);
  expect(value).toEqual({
    messages: [{ operation: "RESOURCE_OPERATION_CREATE", texts: texts.slice(0, 10) }],
    next: "5",
    ended: true,
  });
});
