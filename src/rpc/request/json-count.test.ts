import { Code, type ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { replay } from "../../../test/harness/seed.ts";
import { countJson } from "./json-count.ts";
import type { RequestBounds } from "./request-bounds.ts";

const BOUNDS: RequestBounds = {
  bytes: 1e6,
  parts: 100,
  keys: 100,
  depth: 100,
  records: 100,
  maskCharacters: 0,
  textCharacters: 0,
};
const count = (text: string, bounds: Partial<RequestBounds>) =>
  countJson(Buffer.from(text), { ...BOUNDS, ...bounds });

/** What a text was refused for. */
function refusal(text: string, bounds: Partial<RequestBounds>): unknown {
  try {
    count(text, bounds);
  } catch (error) {
    const { code, details } = error as ConnectError;
    const [detail] = details as unknown as { value: { metadata: Record<string, string> } }[];
    return [Code[code], detail?.value.metadata];
  }
  return undefined;
}

describe("what JSON is made of", () => {
  const refused = (measure: string) => ["InvalidArgument", { measure, limit: "5" }];

  test.each([
    ["levels", "[[[[[]]]]]", "[[[[[[]]]]]]", "depth"],
    ["levels of both kinds", '{"a":[{"b":[{}]}]}', '{"a":[{"b":[{"c":[]}]}]}', "depth"],
    ["elements", "[1,2,3,4,5]", "[1,2,3,4,5,6]", "parts"],
    ["empty elements", "[{},{}]", "[{},{},{}]", "parts"],
    ["members", '{"a":1,"b":2,"c":3,"d":4,"e":5}', '{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}', "keys"],
    [
      "the same member again",
      '{"a":1,"a":2,"a":3,"a":4,"a":5}',
      '{"a":1,"a":2,"a":3,"a":4,"a":5,"a":6}',
      "keys",
    ],
  ])("%s are counted up to the bound and not one more", (_, most, more, measure) => {
    const bounds = { [measure]: 5 };
    expect(refusal(most, bounds)).toBeUndefined();
    expect(refusal(more, bounds)).toEqual(refused(measure));
  });

  test("signs in texts do not count, whatever is escaped in them", () => {
    const property = fc.property(fc.string({ unit: "binary" }), (text) => {
      const signs = `[{:,\\"${text}"\\\\`;
      expect(refusal(JSON.stringify({ [signs]: signs }), { depth: 1, parts: 1, keys: 1 })).toBeUndefined();
    });
    fc.assert(property, replay);
  });

  test("no valid text has more parts than values, or more keys than members", () => {
    const property = fc.property(fc.json(), (text) => {
      let values = 0;
      let keys = 0;
      const walk = (value: unknown): void => {
        values++;
        if (typeof value !== "object" || value === null) return;
        const isEmpty = Object.keys(value).length === 0;
        if (isEmpty) values++;
        if (!Array.isArray(value)) keys += Object.keys(value).length;
        for (const each of Object.values(value)) walk(each);
      };
      walk(JSON.parse(text));
      expect(refusal(text, { parts: values, keys })).toBeUndefined();
    });
    fc.assert(property, replay);
  });

  test.each(["", '"', '"\\', "]]]]", "nonsense", "[1,2"])(
    "%j, which is no JSON, is left for the parser",
    (text) => {
      expect(refusal(text, {})).toBeUndefined();
    },
  );

  test("a million levels are refused without a stack for them", () => {
    expect(refusal("[".repeat(1_000_000), {})).toEqual([
      "InvalidArgument",
      { measure: "depth", limit: "100" },
    ]);
  });
});
