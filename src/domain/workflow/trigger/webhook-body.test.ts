import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { replay } from "../../../../test/harness/seed.ts";
import { parseWebhookBody } from "./webhook-body.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const read = (value: unknown) => parseWebhookBody(bytes(JSON.stringify(value)));

function problemOf(value: unknown): string {
  const result = read(value);
  return "problem" in result ? result.problem : "";
}

describe("parameters", () => {
  test.each([
    [{}],
    [{ name: "value" }],
    [{ _: "", A: "$(id)", a1_B: "line\nline\t'\"`*" }],
    [{ greeting: "Grüße, 世界 🚢" }],
  ])("%j are read as they are", (parameters) => {
    expect(read({ parameters })).toEqual({ parameters, value: { parameters } });
  });

  test("are read among whatever else the sender says", () => {
    expect(read({ id: 7, parameters: { a: "b" }, nested: { parameters: 3 } })).toMatchObject({
      parameters: { a: "b" },
      value: { id: 7 },
    });
  });

  test("keep a key that programs of the server's language know otherwise", () => {
    const result = parseWebhookBody(bytes('{"parameters":{"__proto__":"a","constructor":"b"}}'));
    expect("parameters" in result && Object.entries(result.parameters)).toEqual([
      ["__proto__", "a"],
      ["constructor", "b"],
    ]);
  });

  test("are found behind the mark of byte order that some programs write first", () => {
    expect(parseWebhookBody(bytes('\ufeff{"parameters":{}}'))).toMatchObject({ parameters: {} });
  });

  const pairs = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, "v"]));
  test("are at most ten", () => {
    expect(read({ parameters: pairs(9) })).toMatchObject({ parameters: pairs(9) });
    expect(read({ parameters: pairs(10) })).toMatchObject({ parameters: pairs(10) });
    expect(problemOf({ parameters: pairs(11) })).toBe("give at most 10 parameters, not 11");
  });

  test.each([127, 128])("may have a key of %i characters", (length) => {
    const parameters = { ["k".repeat(length)]: "v" };
    expect(read({ parameters })).toEqual({ parameters, value: { parameters } });
  });

  test.each(["", "1a", "a-b", "a.b", "a b", "ä", "a\n", "a\0", "k".repeat(129)])(
    "must not have the key %j",
    (key) => {
      expect(problemOf({ parameters: { [key]: "v" } })).toContain("a key of parameters must match");
    },
  );

  test.each(["v", "🚢"])("have values of at most 8,192 characters like %s", (character) => {
    for (const length of [8_191, 8_192]) {
      const parameters = { a: character.repeat(length) };
      expect(read({ parameters })).toEqual({ parameters, value: { parameters } });
    }
    expect(problemOf({ parameters: { a: character.repeat(8_193) } })).toBe(
      "parameters.a must have at most 8192 characters",
    );
  });

  test.each([
    ["a number", 1, "must be a text"],
    ["true", true, "must be a text"],
    ["null", null, "must be a text"],
    ["an array", ["x"], "must be a text"],
    ["an object", {}, "must be a text"],
    ["a text with NUL", "a\0b", "NUL"],
    ["half a surrogate pair", "a\ud83d", "surrogate"],
  ])("must not have %s as a value", (_, value, problem) => {
    expect(problemOf({ parameters: { good: "v", name: value } })).toMatch(`parameters.name must`);
    expect(problemOf({ parameters: { good: "v", name: value } })).toContain(problem);
  });

  test.each([[null], ["a=b"], [3], [true], [[]], [[["a", "b"]]]])("must not be %j", (parameters) => {
    expect(problemOf({ parameters })).toBe("parameters must be a JSON object of texts");
  });
});

describe("a body without parameters", () => {
  test.each([
    "",
    "{}",
    " {} ",
    '{"Parameters":{}}',
    '{"action":"opened"}',
    "[]",
    "null",
    "3",
    '"parameters"',
  ])("like %j gives none", (text) => {
    const value = text === "" ? {} : { value: JSON.parse(text) };
    expect(parseWebhookBody(bytes(text))).toEqual({ parameters: {}, ...value });
  });
});

describe("a number of a body", () => {
  test.each([
    ["1234567890123456789", "1234567890123456789"],
    ["-9223372036854775808", "-9223372036854775808"],
    ["1e400", "1e400"],
    ["9007199254740991", 9007199254740991],
    ["9007199254740992", "9007199254740992"],
    ["0.1234567890123456", 0.1234567890123456],
    ["1e3", 1000],
    ["-7", -7],
  ])("of %s keeps its digits", (digits, value) => {
    const text = `{"__proto__":{"id":${digits}},"list":[1,${digits}],"text":": 1234567890123456789"}`;
    const result = parseWebhookBody(bytes(text));
    const read = "value" in result && (result.value as Record<string, unknown>);
    expect(read && Object.entries(read)).toEqual([
      ["__proto__", { id: value }],
      ["list", [1, value]],
      ["text", ": 1234567890123456789"],
    ]);
  });

  test("is no parameter, however large", () => {
    expect(parseWebhookBody(bytes('{"parameters":{"a":1234567890123456789}}'))).toEqual({
      problem: "parameters.a must be a text: put it in quotes",
    });
  });
});

describe("a body that is no JSON in UTF-8", () => {
  test.each([
    " ",
    "{",
    "{'parameters':{}}",
    "payload=%7B%7D",
    '{"parameters":{}}x',
    '{"parameters":{},}',
    "NaN",
  ])("like %j is malformed", (text) => {
    expect(parseWebhookBody(bytes(text))).toEqual({
      malformed: "the body is not JSON: send JSON, or no body at all",
    });
  });

  test.each([
    ["a stray byte", [0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]],
    ["a byte too few", [0x22, 0xe4, 0xb8]],
    ["an overlong form", [0x22, 0xc0, 0x80, 0x22]],
    ["half a surrogate pair", [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ["UTF-16", [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]],
  ])("with %s is malformed", (_, body) => {
    expect(parseWebhookBody(Uint8Array.from(body))).toEqual({ malformed: "the body is not UTF-8" });
  });
});

test("a mebibyte of open brackets is read without harm", () => {
  expect(parseWebhookBody(bytes("[".repeat(2 ** 20)))).toHaveProperty("malformed");
  const nested = `{"parameters":{"a":${"[".repeat(2 ** 19)}${"]".repeat(2 ** 19)}}}`;
  expect(parseWebhookBody(bytes(nested))).toHaveProperty("malformed");
});

test("no JSON makes the reading fail, and what it lets through is within its limits", () => {
  const key = fc.oneof(fc.stringMatching(/^[a-zA-Z_][a-zA-Z0-9_]{0,3}$/), fc.string({ maxLength: 4 }));
  const parameters = fc.dictionary(key, fc.oneof(fc.string({ unit: "binary" }), fc.jsonValue()), {
    maxKeys: 12,
  });
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), fc.record({ parameters })), (value) => {
      const result = read(value);
      if (!("parameters" in result)) return;
      expect(result.parameters).toEqual((value as { parameters?: object } | null)?.parameters ?? {});
      for (const [name, text] of Object.entries(result.parameters)) {
        expect(name).toMatch(/^[a-zA-Z_][a-zA-Z0-9_]*$/);
        expect(typeof text === "string" && text.isWellFormed() && !text.includes("\0")).toBe(true);
      }
    }),
    replay,
  );
});
