import { create, type DescMessage, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import {
  CreateProjectsRequestSchema,
  ListProjectsRequestSchema,
} from "#gen/service/v1/project_service_pb.js";
import { replay } from "../../../test/harness/seed.ts";
import { countBinary } from "./binary-count.ts";
import { requestBounds } from "./request-bounds.ts";

function refusal(schema: DescMessage, bytes: Uint8Array, bounds = requestBounds(schema)): string | undefined {
  try {
    countBinary(schema, bytes, bounds);
    return undefined;
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    return error.rawMessage;
  }
}

const elements = (count: number) => new Uint8Array(Buffer.alloc(2 * count, Buffer.from([0x0a, 0x00])));

describe("the fields of a binary message", () => {
  const bounds = { ...requestBounds(CreateProjectsRequestSchema), records: 50 };

  test("are counted up to the bound and not one more", () => {
    expect(refusal(CreateProjectsRequestSchema, elements(50), bounds)).toBeUndefined();
    expect(refusal(CreateProjectsRequestSchema, elements(51), bounds)).toMatch(/more than the 50 fields/);
  });

  test("are counted inside messages, and in groups of unknown fields", () => {
    const inner = new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(elements(60)).finish();
    expect(refusal(CreateProjectsRequestSchema, inner, bounds)).toMatch(/more than the 50 fields/);
    const group = Buffer.concat([Buffer.from([0x7b]), elements(60), Buffer.from([0x7c])]);
    expect(refusal(CreateProjectsRequestSchema, group, bounds)).toMatch(/more than the 50 fields/);
  });

  test("may be nested as deep as the message, and a million groups are refused without a stack for them", () => {
    const open = new Uint8Array(1_000_000).fill(0x7b);
    const wide = { ...bounds, records: 2_000_000 };
    expect(refusal(CreateProjectsRequestSchema, open, wide)).toMatch(/levels of nesting/);
  });

  test("of another kind than the contract's are refused: the parser would read them as what they are not", () => {
    const bytes = new BinaryWriter().tag(1, WireType.Varint).uint32(7).finish();
    expect(refusal(CreateProjectsRequestSchema, bytes)).toMatch(/no binary message/);
  });

  test.each([
    ["a length past the end", [0x0a, 0x7f]],
    ["an element longer than its message", [0x0a, 0x02, 0x0a, 0x05, 0x00]],
    ["a group without its end", [0x7b]],
    ["an end without its group", [0x7c]],
    ["a number past the end", [0x09, 0x00]],
    ["a varint without an end", Array(11).fill(0xff)],
  ])("%s is refused", (_, bytes) => {
    expect(refusal(CreateProjectsRequestSchema, new Uint8Array(bytes))).toMatch(/no binary message/);
  });

  test("of whatever the parser takes are never fewer than it builds", () => {
    const property = fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      if (refusal(ListProjectsRequestSchema, bytes) !== undefined) return;
      let message: unknown;
      try {
        message = fromBinary(ListProjectsRequestSchema, bytes);
      } catch {
        return;
      }
      const parts = built(message);
      if (parts === 0) return;
      expect(refusal(ListProjectsRequestSchema, bytes, { ...bounds, records: parts - 1 })).toBeDefined();
    });
    fc.assert(property, { ...replay, numRuns: 20_000 });
  });

  test("are fields, whatever order and form they have", () => {
    const message = create(CreateProjectsRequestSchema, { projects: [{ name: "a" }, {}] });
    const bytes = toBinary(CreateProjectsRequestSchema, message);
    expect(refusal(CreateProjectsRequestSchema, bytes, { ...bounds, records: 3 })).toBeUndefined();
    expect(refusal(CreateProjectsRequestSchema, bytes, { ...bounds, records: 2 })).toBeDefined();
  });
});

/** Elements of lists and unknown fields in a message, at all levels. */
function built(value: unknown): number {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return 0;
  const own = Array.isArray(value) ? value.length : 0;
  return Object.values(value).reduce<number>((sum, each) => sum + built(each), own);
}
