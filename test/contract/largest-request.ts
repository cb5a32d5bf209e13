import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  ScalarType,
} from "@bufbuild/protobuf";
import type { FieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { rulesOf } from "../../src/rpc/rules.ts";
import { jsonBytes } from "./json-bytes.ts";
import { isWellKnown } from "./reach.ts";

const UUID = "ffffffff-ffff-7fff-bfff-ffffffffffff";
const TIMESTAMP = "9999-12-31T23:59:59.999999999Z";

/** CEL rules that accept only ASCII, by id. */
const ASCII_RULES = new Set(["image_name", "output_key_format"]);

/** CEL rules that accept texts of the form of a remote, by id. */
const REMOTE_RULES = new Set(["remote_uri_form", "uri_or_remote"]);

/** Messages whose oneof excludes their other fields by a CEL rule. */
const WITHOUT_ONEOF = new Set(["service.v1.UserInputBlock"]);

/** The field that must differ between the elements of a list by a CEL rule, for each type of element. */
const UNIQUE_FIELDS = new Map([["service.v1.WorkflowParameter", "key"]]);

type Type<C> = Extract<FieldRules["type"], { case: C }>["value"];
type RuleKind = Exclude<FieldRules["type"]["case"], undefined>;

/**
 * Returns the largest valid JSON of a message: every field at its bound, texts in characters of
 * four bytes where the rules accept them, the largest member of each oneof. Equal parts are the
 * same objects, so that hundreds of megabytes are described without allocating them.
 *
 * @throws when a field has no upper bound, naming it
 */
export function largest(message: DescMessage): JsonValue {
  const fields = message.fields.filter((field) => !field.oneof);
  const oneofs = WITHOUT_ONEOF.has(message.typeName) ? [] : message.oneofs;
  const members = [
    ...fields.map(member),
    ...oneofs.flatMap((oneof) => {
      const choices = oneof.fields.map(member).sort((a, b) => memberBytes(b) - memberBytes(a));
      return choices.slice(0, 1);
    }),
  ];
  return Object.fromEntries(members);
}

function member(field: DescField): [string, JsonValue] {
  return [field.jsonName, largestValue(field)];
}

function memberBytes([name, value]: [string, JsonValue]): number {
  return jsonBytes(name) + jsonBytes(value);
}

/** Returns the largest number of characters, bytes, elements or entries that the rules of a field allow. */
export function boundOf(
  rules: FieldRules | undefined,
  kind: "text" | "bytes" | "list" | "map",
): number | undefined {
  const fromCel = (rules?.cel ?? []).map(({ expression }) => /size\(this\) <= (\d+)/.exec(expression)?.[1]);
  const standard = {
    text: typed(rules, "string")?.maxLen,
    bytes: typed(rules, "bytes")?.maxLen,
    list: typed(rules, "repeated")?.maxItems,
    map: typed(rules, "map")?.maxPairs,
  }[kind];
  const bounds = [standard || undefined, ...fromCel].filter((each) => each !== undefined).map(Number);
  return bounds.length > 0 ? Math.min(...bounds) : undefined;
}

function typed<C extends RuleKind>(rules: FieldRules | undefined, kind: C): Type<C> | undefined {
  return (rules?.type.case === kind ? rules.type.value : undefined) as Type<C> | undefined;
}

function bounded(field: DescField, bound: number | undefined): number {
  if (bound === undefined) throw new Error(`${field} has no upper bound`);
  return bound;
}

function largestValue(field: DescField): JsonValue {
  const rules = rulesOf(field);
  if (field.fieldKind === "list") {
    const length = bounded(field, boundOf(rules, "list"));
    const items = typed(rules, "repeated")?.items;
    if (typed(rules, "repeated")?.unique && field.scalar === ScalarType.STRING) {
      return Array.from({ length }, (_, index) => text(field, items, index));
    }
    const element = elementOf(field, items, 0);
    const unique = UNIQUE_FIELDS.get(field.message?.typeName ?? "");
    if (unique === undefined) return Array<JsonValue>(length).fill(element);
    return Array.from({ length }, (_, index) => withLastLetter(element as JsonObject, unique, index));
  }
  if (field.fieldKind === "map") {
    const size = bounded(field, boundOf(rules, "map"));
    const { keys, values } = typed(rules, "map") ?? {};
    const value = elementOf(field, values, 0);
    return Object.fromEntries(Array.from({ length: size }, (_, index) => [text(field, keys, index), value]));
  }
  return elementOf(field, rules, 0);
}

/** Returns a copy of an element with a different last letter in one of its texts. */
function withLastLetter(element: JsonObject, name: string, index: number): JsonObject {
  const text = String(element[name]);
  return { ...element, [name]: text.slice(0, -1) + String.fromCharCode(0x61 + index) };
}

function elementOf(field: DescField, rules: FieldRules | undefined, index: number): JsonValue {
  if (field.message)
    return isWellKnown(field.message) ? wellKnown(field.message, rules) : largest(field.message);
  if (field.enum) return longestName(field.enum, rules);
  switch (field.scalar) {
    case ScalarType.STRING:
      return text(field, rules, index);
    case ScalarType.BYTES:
      return Buffer.alloc(bounded(field, boundOf(rules, "bytes"))).toString("base64");
    case ScalarType.BOOL:
      return false;
    case ScalarType.INT32:
      return longestInt32(rules);
    case ScalarType.INT64:
      return (typed(rules, "int64")?.lessThan.value ?? 2n ** 63n - 1n).toString();
    case ScalarType.UINT64:
      return (2n ** 64n - 1n).toString();
    case ScalarType.FLOAT:
      return -3.4028234663852886e38;
    case ScalarType.DOUBLE:
      // Not negative: the only one of the contract is an amount.
      return 2.2250738585072014e-308;
    default:
      throw new Error(`${field} is of a type that requests have not had yet`);
  }
}

/** Returns a text at its bound, made unique by `index`. */
function text(field: DescField, rules: FieldRules | undefined, index: number): string {
  const standard = typed(rules, "string");
  if (standard?.wellKnown.case === "uuid") return UUID;
  if (standard?.in.length) return standard.in.reduce((a, b) => (b.length > a.length ? b : a));
  if (standard?.pattern.startsWith("^$|^[0-9a-fA-F]")) return UUID;
  const length = bounded(field, boundOf(rules, "text"));
  if (standard?.wellKnown.case === "uri") return "https://git.example.com/".padEnd(length, "a");
  if (standard?.pattern.includes("\\.)+[a-zA-Z]{2,}$")) return domain(length, index);
  if (standard?.pattern.includes("[a-z_]+\\.")) return eventKind(length, index);
  const last = String.fromCodePoint(0x20000 + index);
  if (rules?.cel.some(({ id }) => REMOTE_RULES.has(id))) return `a://${"😀".repeat(length - 5)}${last}`;
  if (rules?.cel.some(({ id }) => id === "absolute_path")) return `/${"😀".repeat(length - 2)}${last}`;
  if (rules?.cel.some(({ id }) => id === "annotation_key_form")) return `a/${"😀".repeat(length - 3)}${last}`;
  const isAscii = standard?.pattern || rules?.cel.some(({ id }) => ASCII_RULES.has(id));
  // Small letters, then capital ones.
  if (isAscii) return "a".repeat(length - 1) + String.fromCharCode(index < 26 ? 0x61 + index : 0x27 + index);
  return "😀".repeat(length - 1) + last;
}

/** Returns a kind of event, of small letters. */
function eventKind(length: number, index: number): string {
  const end = String.fromCharCode(0x61 + (index % 26), 0x61 + Math.floor(index / 26));
  return `${"a".repeat(length - 4)}.a${end}`;
}

/** Returns a mail domain of labels of 63 characters at most. */
function domain(length: number, index: number): string {
  const end = `.${String.fromCharCode(0x61 + (index % 26))}${String.fromCharCode(0x61 + Math.floor(index / 26))}`;
  return `${`${"a".repeat(63)}.`.repeat(3)}${"a".repeat(length - 3 * 64 - end.length)}${end}`;
}

function wellKnown(message: DescMessage, rules: FieldRules | undefined): JsonValue {
  if (message.name === "Timestamp") return TIMESTAMP;
  // At most 64 paths of at most 256 characters, by the rules of every update mask.
  if (message.name === "FieldMask") return Array(64).fill("😀".repeat(256)).join();
  const duration = typed(rules, "duration");
  if (duration?.lessThan.case !== "lte") throw new Error("a duration has no upper bound");
  const most = duration.lessThan.value.seconds;
  const isWhole = rules?.cel.some(({ id }) => id.endsWith("_whole_days"));
  return isWhole ? `${most}s` : `${most - 1n}.999999999s`;
}

function longestInt32(rules: FieldRules | undefined): number {
  const standard = typed(rules, "int32");
  const inCel = rules?.cel.map(({ expression }) => /this <= (\d+)/.exec(expression)?.[1]).find(Boolean);
  const most = Number(inCel ?? standard?.lessThan.value ?? 2 ** 31 - 1);
  return inCel === undefined && standard?.greaterThan.case === undefined ? -(2 ** 31) : most;
}

function longestName({ values }: DescEnum, rules: FieldRules | undefined): string {
  const isStated = rules?.cel.some(({ expression }) => expression === "this != 0");
  const refused = typed(rules, "enum")?.notIn ?? [];
  const allowed = values.filter(({ number }) => (number !== 0 || !isStated) && !refused.includes(number));
  return allowed.map(({ name }) => name).reduce((a, b) => (b.length > a.length ? b : a));
}
