import { create, fromBinary, fromJsonString, toBinary, toJsonString } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { StreamInputsResponseSchema } from "#gen/runner/v1/agent_work_service_pb.js";
import { JSON_OPTIONS } from "../request/json-options.ts";
import { encodeLarge } from "./large-message.ts";

const image = (length: number, fill: number) => ({
  input: {
    case: "image" as const,
    value: { data: new Uint8Array(length).fill(fill), mimeType: "image/png" },
  },
});
const text = { input: { case: "text" as const, value: { content: 'quoted "é" 🗝' } } };

function delivery(...lengths: readonly number[]) {
  const inputs = [text, ...lengths.map(image), text];
  return create(StreamInputsResponseSchema, {
    input: { id: "images", input: { case: "userInput", value: { id: "images", inputs } } },
    steer: true,
  });
}

async function encoded(message: ReturnType<typeof delivery>, isBinary: boolean) {
  const { lengthBytes, pieces } = await encodeLarge(
    { schema: StreamInputsResponseSchema, message },
    isBinary,
  );
  const bytes = Buffer.concat([...pieces]);
  expect(bytes.length).toBe(lengthBytes);
  return bytes;
}

// Around the pieces of base64, with each number of bytes that padding may follow.
const LENGTHS = [0, 1, 98_303, 98_304, 98_305, 98_306, 196_608, 1_000_001];

describe("a large message", () => {
  test.each(LENGTHS)(
    "is written as JSON as the protocol layer writes it, with an image of %d bytes",
    async (length) => {
      const whole = toJsonString(StreamInputsResponseSchema, delivery(length, 5, length), JSON_OPTIONS);
      const bytes = await encoded(delivery(length, 5, length), false);
      expect(bytes.toString()).toBe(whole);
      expect(fromJsonString(StreamInputsResponseSchema, whole)).toEqual(delivery(length, 5, length));
    },
  );

  test.each(LENGTHS)(
    "is written in binary to the same message, with an image of %d bytes",
    async (length) => {
      const bytes = await encoded(delivery(length, 5, length), true);
      expect(bytes.length).toBe(toBinary(StreamInputsResponseSchema, delivery(length, 5, length)).length);
      const back = fromBinary(StreamInputsResponseSchema, bytes);
      expect(toJsonString(StreamInputsResponseSchema, back)).toBe(
        toJsonString(StreamInputsResponseSchema, delivery(length, 5, length)),
      );
    },
  );
});
