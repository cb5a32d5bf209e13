import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { type FieldRules, Ignore } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { isId, rulesOf } from "../../src/rpc/rules.ts";
import type { Random } from "../harness/random.ts";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** Returns an id for the field at a path such as `filter.projectIds[]`. */
export type IdSource = (path: string) => string;

/** Messages are nested a few levels deep; below this depth only required fields are set. */
const OPTIONAL_UNTIL_DEPTH = 5;

/**
 * Returns a request that nearly always satisfies the rules of its message; rules across fields are
 * left to chance.
 */
export function randomMessage(
  random: Random,
  message: DescMessage,
  idOf: IdSource,
  path = "",
  depth = 0,
): JsonObject {
  const json: JsonObject = {};
  const set = (field: DescField) => {
    const name = path ? `${path}.${field.jsonName}` : field.jsonName;
    json[field.jsonName] = fieldValue(random, field, idOf, name, depth);
  };
  for (const field of message.fields) {
    const wanted = random.chance(depth < OPTIONAL_UNTIL_DEPTH ? 0.5 : 0);
    if (!field.oneof && (mustBeSet(rulesOf(field)) || wanted)) set(field);
  }
  for (const oneof of message.oneofs) set(random.pick(oneof.fields));
  return json;
}

/**
 * Returns whether omitting the field breaks a rule. For a field with presence it would not; setting
 * it does no harm.
 */
function mustBeSet(rules: FieldRules | undefined): boolean {
  if (!rules || rules.ignore === Ignore.IF_ZERO_VALUE) return false;
  const { case: kind, value } = rules.type;
  return (
    rules.required ||
    (kind === "string" && (value.minLen > 0n || value.wellKnown.case !== undefined)) ||
    (kind === "repeated" && value.minItems > 0n) ||
    rules.cel.some(({ expression }) => /size\(this\) >= [1-9]|this >= 1/.test(expression))
  );
}

function fieldValue(random: Random, field: DescField, idOf: IdSource, path: string, depth: number): Json {
  const rules = rulesOf(field);
  const type = rules?.type;
  if (field.fieldKind === "list") {
    const list = type?.case === "repeated" ? type.value : undefined;
    const count = size(random, Number(list?.minItems ?? 0), Number(list?.maxItems ?? 0) || 4, 3);
    return Array.from({ length: count }, () =>
      elementValue(random, field, list?.items, idOf, `${path}[]`, depth),
    );
  }
  if (field.fieldKind === "map") {
    const map = type?.case === "map" ? type.value : undefined;
    const pairs = Array.from({ length: size(random, 0, Number(map?.maxPairs ?? 0) || 3, 3) }, () => [
      textValue(random, map?.keys, idOf, path),
      elementValue(random, field, map?.values, idOf, path, depth),
    ]);
    return Object.fromEntries(pairs);
  }
  return elementValue(random, field, rules, idOf, path, depth);
}

function elementValue(
  random: Random,
  field: DescField,
  rules: FieldRules | undefined,
  idOf: IdSource,
  path: string,
  depth: number,
): Json {
  if (field.message) {
    const { typeName } = field.message;
    if (typeName === "google.protobuf.Timestamp") return new Date(random.integer(0, 2 ** 41)).toISOString();
    if (typeName === "google.protobuf.Duration") return durationValue(random, rules);
    return randomMessage(random, field.message, idOf, path, depth + 1);
  }
  if (field.enum) {
    const { name, number } = random.pick(field.enum.values);
    return random.chance(0.8) ? name : number;
  }
  switch (field.scalar) {
    case ScalarType.STRING:
      return textValue(random, rules, idOf, path);
    case ScalarType.BOOL:
      return random.chance(0.5);
    case ScalarType.BYTES:
      return Buffer.from(random.bytes(random.integer(1, 40))).toString("base64");
    case ScalarType.FLOAT:
    case ScalarType.DOUBLE:
      return random.fraction() * 100;
    default: {
      const range =
        rules?.type.case === "int32" || rules?.type.case === "int64" ? rules.type.value : undefined;
      const least = range?.greaterThan.case === "gte" ? Number(range.greaterThan.value) : 0;
      const most = range?.lessThan.case === "lte" ? Number(range.lessThan.value) : 1_000;
      return random.pick([least, most, random.integer(least, most)]);
    }
  }
}

function durationValue(random: Random, rules: FieldRules | undefined): string {
  const range = rules?.type.case === "duration" ? rules.type.value : undefined;
  const least = range?.greaterThan.case === "gte" ? Number(range.greaterThan.value.seconds) : 0;
  const most = range?.lessThan.case === "lte" ? Number(range.lessThan.value.seconds) : 86_400;
  return `${random.pick([least, most, Math.min(3_600, most), random.integer(least, most)])}s`;
}

function textValue(random: Random, rules: FieldRules | undefined, idOf: IdSource, path: string): string {
  if (isId(rules)) return idOf(path);
  const text = rules?.type.case === "string" ? rules.type.value : undefined;
  if (text && text.in.length > 0) return random.pick(text.in);
  if (text?.pattern) return `key_${random.integer(0, 99)}`;
  if (/ur[il]s?(\[\])?$/i.test(path)) return `https://git.example.org/team/${random.integer(0, 99)}.git`;
  const bounds = (rules?.cel ?? []).map(({ expression }) => expression).join(" ");
  const least = Number(/size\(this\) >= (\d+)/.exec(bounds)?.[1] ?? text?.minLen ?? 0);
  const most = Number(/size\(this\) <= (\d+)/.exec(bounds)?.[1] ?? text?.maxLen ?? 0) || 20;
  return randomText(random, size(random, least, most, 12));
}

/** Returns a size between the bounds: usually small, now and then one of the bounds. */
function size(random: Random, least: number, most: number, usually: number): number {
  if (random.chance(0.03)) return most;
  if (random.chance(0.1)) return least;
  return random.integer(least, Math.min(most, Math.max(least, usually)));
}

const LETTERS = [..."abcdefghijklmnopqrstuvwxyzABCXYZ0123456789-_. éßÉİıΣςжЖ東京한עन🐧𐐀%\\'\""];

/** Returns a text of so many characters without control characters. */
export function randomText(random: Random, length: number): string {
  const start = random.integer(0, LETTERS.length - 1);
  // Long texts repeat themselves: drawing each letter would take most of the time of a run.
  const part = Array.from(
    { length: Math.min(length, 40) },
    (_, i) => LETTERS[(start + i * i) % LETTERS.length],
  );
  return Array.from({ length }, (_, i) => part[i % part.length]).join("");
}
