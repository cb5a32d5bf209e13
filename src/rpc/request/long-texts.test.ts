import {
  fromJson,
  type JsonValue,
  type MessageShape,
  ScalarType,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "@jest/globals";
import { AgentService, SendToAgentExecutionRequestSchema } from "#gen/service/v1/agent_service_pb.js";
import { CONTRACT } from "../contract.ts";
import { MAX_BODY_BYTES, requestBounds } from "./request-bounds.ts";
import { requestReading } from "./request-reading.ts";

const schema = SendToAgentExecutionRequestSchema;
const reading = requestReading(AgentService.method.sendToAgentExecution, false);
const image = (data: string, mimeType = "image/png") => ({ image: { data, mimeType } });
const request = (...inputs: JsonValue[]) => ({
  agentExecutionId: "0190c0de-0000-7000-8000-000000000000",
  userInput: { inputs },
});
const parse = (text: string) =>
  reading.parse(false, new Uint8Array(Buffer.from(text))) as MessageShape<typeof schema>;
const bytesOf = (length: number) => Buffer.from(Array.from({ length }, (_, index) => (index * index) % 251));

/** Both ways to read a body say the same. */
function expectSame(text: string): void {
  const expected = toBinary(schema, fromJson(schema, JSON.parse(text)));
  // Not toEqual, which takes seconds for so many bytes.
  expect(Buffer.compare(toBinary(schema, parse(text)), expected)).toBe(0);
}

function refusal(text: string): string {
  try {
    parse(text);
    return "";
  } catch (error) {
    return (error as ConnectError).rawMessage;
  }
}

describe("long texts of a JSON body", () => {
  test("become the bytes that they say, each in its place", () => {
    const texts = [100_001, 200_000, 300_002, 4, 150_000].map((length) => bytesOf(length).toString("base64"));
    expectSame(JSON.stringify(request(...texts.map((data) => image(data)))));
    expectSame(JSON.stringify(request(...texts.map((data) => image(data))), undefined, 2));
  });

  test("may be twice the same, and in the same body as short ones and other texts", () => {
    const data = bytesOf(120_000).toString("base64");
    const text = { text: { content: 'é"\\'.repeat(30_000) } };
    expectSame(JSON.stringify(request(image(data), text, image("AAAA"), image(data))));
  });

  test.each<[string, (base64: string) => string]>([
    [
      "for URLs and without padding",
      (base64) => base64.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, ""),
    ],
    ["with slashes escaped, as PHP does", (base64) => base64.replaceAll("/", "\\/")],
    ["with plus signs escaped, as .NET does", (base64) => base64.replaceAll("+", "\\u002B")],
    ["in lines", (base64) => base64.replaceAll(/.{76}/g, "$&\\r\\n")],
    ["in parts with padding of their own", (base64) => `AA==${base64}`],
    ["with blanks", (base64) => ` ${base64} `],
  ])("are read %s", (_, written) => {
    const base64 = bytesOf(1_000_001).toString("base64");
    expectSame(JSON.stringify(request(image("="))).replace('"="', () => `"${written(base64)}"`));
  });

  test.each([
    ["in the middle", `${"A".repeat(150_000)}!${"A".repeat(150_000)}`],
    ["at the end", `${"A".repeat(150_000)}*`],
    ["past ASCII", `${"A".repeat(1_300_000)}é`],
  ])("that are no base64 %s are refused in the parser's words", (_, data) => {
    expect(refusal(JSON.stringify(request(image(data))))).toBe(
      "cannot decode field service.v1.UserInputBlock.ImageInput.data from JSON: invalid base64 string",
    );
  });

  test("stay too long for the fields that hold no bytes", () => {
    const json = toJson(schema, parse(JSON.stringify(request({ text: { content: "A".repeat(200_000) } }))));
    expect(json).toMatchObject({
      userInput: { inputs: [{ text: { content: expect.stringMatching(/^.{100001,}$/) } }] },
    });
  });

  test("are refused where they do not end, and where they are a key", () => {
    expect(refusal(`{"userInput":"${"A".repeat(200_000)}`)).toMatch(/JSON/);
    expect(refusal(`{"${"A".repeat(200_000)}":1}`)).toMatch(/is unknown$/);
  });

  test("leave no more than the largest body of other operations", () => {
    const inputs = Array.from({ length: 50 }, () => ({ text: { content: "\\".repeat(500_000) } }));
    expect(refusal(JSON.stringify(request(...inputs)))).toContain(
      `more than the ${MAX_BODY_BYTES} bytes in addition to`,
    );
    const many = Array.from({ length: 180 }, () => image("A".repeat(300_000)));
    expect(refusal(JSON.stringify(request(...many)))).toContain(
      `more than the ${MAX_BODY_BYTES} bytes in addition to`,
    );
  });
});

test("requests with large bytes hold none in lists or maps, which are not looked through", () => {
  const inputs = CONTRACT.flatMap(({ methods }) => methods.map(({ input }) => input));
  const large = inputs.filter((input) => requestBounds(input).bytes > MAX_BODY_BYTES);
  expect(large).toContain(schema);
  const reached = new Set(large);
  for (const { fields } of reached) {
    for (const field of fields) {
      if (field.scalar === ScalarType.BYTES)
        expect([String(field), field.fieldKind]).toEqual([String(field), "scalar"]);
      if (field.message) reached.add(field.message);
    }
  }
});
