import type { Random } from "../harness/random.ts";
import { type Json, type JsonObject, randomText } from "./json-value.ts";

/** Values put where a value of another type is expected. */
const STRANGERS: readonly Json[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  101,
  2 ** 31,
  -(2 ** 31) - 1,
  2 ** 53,
  1e308,
  -1e-308,
  "",
  "0",
  "-1",
  "1e5",
  "NaN",
  "Infinity",
  "18446744073709551616",
  "9223372036854775808",
  "true",
  "null",
  [],
  {},
  [[]],
  [null],
  [{}],
  { "": "" },
  { value: 1 },
  "not-a-uuid",
  "00000000-0000-0000-0000-000000000000",
  "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
  "{00000000-0000-0000-0000-000000000000}",
  "PRINCIPAL_NOBODY",
  "RUNNER_KIND_LOCAL_CONFIGURATION",
  "1s",
  "-1s",
  "0.0000000001s",
  "315576000001s",
  "1h",
  "2026-02-30T00:00:00Z",
  "0000-01-01T00:00:00Z",
  "9999-12-31T23:59:60Z",
  "2026-01-01",
  "=",
  "====",
  "a===",
  "/etc/passwd",
  "../..",
  "\u0000",
  "a\u0000b",
  "\n",
  "\u001b[31m",
  "\u007f",
  "\u2028",
  "\ufeff",
  "\ufffe",
  "\u202e",
  "e\u0301",
  "\ud83d\udc27",
  "\ud800",
  "\udc00",
  "a\ud800b",
  "\udc00\ud800",
  "' or 1=1 --",
  "%00",
  "%s%n",
  "<script>",
  "__proto__",
  "constructor",
];

const NAMES = [
  "__proto__",
  "constructor",
  "toString",
  "",
  "unknownField",
  "@type",
  "$",
  "filter",
  "ID",
  "id",
  "0",
  "\ud800",
];

/** Sizes around the bounds of the contract. */
const SIZES = [
  80, 81, 127, 128, 129, 256, 257, 512, 513, 1_024, 1_025, 2_048, 2_049, 4_096, 4_097, 8_192, 8_193,
];

/** Returns the JSON with one to three faults. */
export function mutateJson(random: Random, json: Json): Json {
  let mutated = json;
  for (let faults = random.integer(1, 3); faults > 0; faults--) mutated = mutateSomewhere(random, mutated);
  return mutated;
}

/** Returns random JSON without a schema. */
export function randomJson(random: Random, depth = 0): Json {
  if (depth > 4 || random.chance(0.4)) return random.pick(STRANGERS);
  const count = random.integer(0, 4);
  if (random.chance(0.4)) return Array.from({ length: count }, () => randomJson(random, depth + 1));
  const members = Array.from({ length: count }, () => [
    random.chance(0.5) ? random.pick(NAMES) : randomText(random, random.integer(0, 8)),
    randomJson(random, depth + 1),
  ]);
  return Object.fromEntries(members);
}

/** Applies a fault that only text can have: it does not parse, or parses into something unexpected. */
export function mutateText(random: Random, text: string): Buffer {
  const at = random.integer(0, text.length);
  const insert = (what: string) => text.slice(0, at) + what + text.slice(at);
  const faults: (() => string | Buffer)[] = [
    () => text.slice(0, at),
    () =>
      insert(
        random.pick([
          "\u0000",
          "\\",
          '"',
          ",",
          "}",
          "]",
          "{",
          "//",
          "/**/",
          "NaN",
          "\ufeff",
          "\t",
          "\\u12",
          "\\x41",
        ]),
      ),
    () =>
      text.replace(
        /:(?=[^/])/,
        random.pick([': 1e999, "x":', ': 99999999999999999999999, "x":', ': 01, "x":', ":"]),
      ),
    () => text.replace("{", random.pick(['{"a":1,"a":2,', '{"__proto__":{"x":1},', "{'a':1,", "{,"])),
    () => `${text}${random.pick([text, " ", "\n", "}", "null", "\u0000"])}`,
    () => `${random.pick(["\ufeff", " \n\t", ")]}',\n", "\u00a0"])}${text}`,
    () => Buffer.from(text, "utf16le"),
    () => Buffer.from(text, "latin1"),
    () => "[".repeat(random.pick([10, 1_000, 60_000])),
    () => `{"a":${"[".repeat(5_000)}${"]".repeat(5_000)}}`,
    () => `${'{"filter":'.repeat(3_000)}{}${"}".repeat(3_000)}`,
    () => brokenUtf8(random, text),
  ];
  return Buffer.from(random.pick(faults)() as string);
}

function brokenUtf8(random: Random, text: string): Buffer {
  const bytes = Buffer.from(text);
  const broken = random.pick([
    [0xff],
    [0xc0, 0x80],
    [0xed, 0xa0, 0x80],
    [0xf8, 0x88, 0x80, 0x80, 0x80],
    [0xe6, 0x9d],
    [0x80],
  ]);
  const at = random.integer(0, bytes.length);
  return Buffer.concat([bytes.subarray(0, at), Buffer.from(broken), bytes.subarray(at)]);
}

function mutateSomewhere(random: Random, json: Json): Json {
  const children = childrenOf(json);
  if (children.length === 0 || random.chance(0.15)) return mutateHere(random, json);
  const [name, value] = random.pick(children);
  return withChild(json, name, mutateSomewhere(random, value));
}

function childrenOf(json: Json): [string, Json][] {
  return typeof json === "object" && json !== null ? Object.entries(json) : [];
}

function withChild(json: Json, name: string, value: Json): Json {
  if (Array.isArray(json)) return json.with(Number(name), value);
  return { ...(json as JsonObject), [name]: value };
}

function mutateHere(random: Random, json: Json): Json {
  if (random.chance(0.3)) return random.pick(STRANGERS);
  if (typeof json === "string") return mutateString(random, json);
  if (typeof json === "number")
    return random.pick([-json - 1, json + 0.5, json * 2 ** 33, String(json), json + 1]);
  if (Array.isArray(json)) {
    const [first = null] = json;
    return random.pick<Json>([
      Array(random.pick([11, 26, 31, 101])).fill(first),
      [...json, ...json],
      [...json, null],
      json.slice(1),
      Object.fromEntries(json.entries()),
    ]);
  }
  if (typeof json !== "object" || json === null) return [json];
  return mutateObject(random, json);
}

function mutateString(random: Random, text: string): Json {
  const length = random.pick(SIZES);
  return random.pick<Json>([
    text.toUpperCase(),
    text.slice(1),
    `${text}\u0000`,
    `${text}\ud83d`,
    `/${text}`,
    [text],
    { value: text },
    "x".repeat(length),
    "🐧".repeat(length),
    text.padEnd(length, "é"),
  ]);
}

function mutateObject(random: Random, json: JsonObject): Json {
  const entries = Object.entries(json);
  const name = random.pick(NAMES);
  const [first = ["x", null]] = entries;
  return random.pick<Json>([
    // Text, because an object literal would take a member of that name for its prototype.
    JSON.parse(`{${JSON.stringify(name)}: ${JSON.stringify(random.pick(STRANGERS))}}`),
    { ...json, [name]: random.pick(STRANGERS) },
    {
      ...json,
      ...Object.fromEntries(Array.from({ length: random.pick([33, 51, 101]) }, (_, i) => [`k${i}`, "v"])),
    },
    Object.fromEntries(entries.slice(1)),
    Object.fromEntries(
      entries.map(([key, value]) => [key.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`), value]),
    ),
    Object.fromEntries(entries.map(([key, value]) => [key.toUpperCase(), value])),
    Object.fromEntries([...entries, [first[0], null]]),
    { ...json, self: json },
    entries.map(([, value]) => value),
  ]);
}
