import { expect, test } from "@jest/globals";
import { parseAgentMessage } from "./agent-message-parsing.ts";

test.each([
  [undefined, ""],
  [null, ""],
  ["a text \ud800", "a text \ufffd"],
  [{ path: "a" }, '{"path":"a"}'],
])("the input %j is the same text in a tool call and in a request for permission", (input, text) => {
  const line = { id: "call", title: "Edit", ...(input !== undefined && { input }) };
  expect(parseAgentMessage({ type: "tool_call", ...line })).toMatchObject({
    blocks: [{ value: { input: text } }],
  });
  expect(parseAgentMessage({ type: "permission_request", ...line })).toMatchObject({
    request: { toolCallId: "call", request: { value: { input: text } } },
  });
});
