import { create, type DescMessage, fromJson, type JsonValue, type MessageShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { SendToAgentExecutionRequestSchema } from "#gen/service/v1/agent_service_pb.js";
import { CreateProjectRequestSchema } from "#gen/service/v1/project_service_pb.js";
import { largest } from "../../test/contract/largest-request.ts";
import { CONTRACT } from "./contract.ts";
import { deterministicBytes } from "./deterministic-bytes.ts";
import { deterministicPieces } from "./deterministic-pieces.ts";

const LARGE_BYTES = 100_000;

function made<D extends DescMessage>(schema: D, message: MessageShape<D>) {
  const work = deterministicPieces(schema, message);
  let stops = 0;
  for (;;) {
    const { done, value } = work.next();
    if (done) return { pieces: value, stops };
    stops++;
  }
}

/** Cuts lists to three elements and shortens texts, so that hundreds of messages take only seconds. */
function shortened(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.slice(0, 3).map(shortened);
  if (typeof value !== "object" || value === null) {
    return typeof value === "string" && value.length > LARGE_BYTES ? value.slice(0, LARGE_BYTES) : value;
  }
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, shortened(part)]));
}

const methods = CONTRACT.flatMap((service) =>
  service.methods.map((method) => [`${service.name}/${method.name}`, method.input] as const),
);

describe("the pieces of a message", () => {
  test.each(methods)("are the bytes of a request of %s", (_, input) => {
    const message = fromJson(input, shortened(largest(input)));
    expect(Buffer.concat(made(input, message).pieces).equals(deterministicBytes(input, message))).toBe(true);
  });

  test("are the same whatever order the maps of the message came in", () => {
    const bytes = (annotations: JsonValue) => {
      const message = fromJson(CreateProjectRequestSchema, { name: "ship", annotations });
      return Buffer.concat(made(CreateProjectRequestSchema, message).pieces);
    };
    expect(bytes({ a: "1", b: "2" })).toEqual(bytes({ b: "2", a: "1" }));
  });

  test("are large bytes in their places, and stops between them", () => {
    const images = Array.from({ length: 10 }, (_, index) => new Uint8Array(LARGE_BYTES).fill(index));
    const inputs = images.map((data) => ({
      input: { case: "image" as const, value: { data, mimeType: "image/png" } },
    }));
    const message = create(SendToAgentExecutionRequestSchema, {
      agentExecutionId: "one",
      input: { case: "userInput", value: { inputs } },
    });
    const { pieces, stops } = made(SendToAgentExecutionRequestSchema, message);
    expect(pieces.filter(({ length }) => length >= LARGE_BYTES)).toEqual(images);
    for (const image of images) expect(pieces.some((piece) => piece === image)).toBe(true);
    const others = pieces.filter((piece) => !images.includes(piece as never));
    expect(others.reduce((sum, { length }) => sum + length, 0)).toBeLessThan(1_000);
    expect(stops).toBeGreaterThan(images.length);
    expect(Buffer.concat(pieces).equals(deterministicBytes(SendToAgentExecutionRequestSchema, message))).toBe(
      true,
    );
  });

  test("hold unknown fields", () => {
    const message = create(CreateProjectRequestSchema, { name: "ship", annotations: { b: "2" } });
    message.$unknown = [{ no: 15_000, wireType: 0, data: new Uint8Array([1]) }];
    const { pieces } = made(CreateProjectRequestSchema, message);
    expect(Buffer.concat(pieces)).toEqual(
      Buffer.from(deterministicBytes(CreateProjectRequestSchema, message)),
    );
  });
});
