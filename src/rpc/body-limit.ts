import type { DescEnum, DescField, DescMessage, DescService } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import type { FieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { rulesOf } from "./rules.ts";

/** A character of UTF-8 takes at most this many bytes. */
const CHARACTER_BYTES = 4;
const UUID_BYTES = 36;
/** `"2026-01-02T03:04:05.123456789Z"` and `"-315576000000.000000001s"` with room to spare. */
const WELL_KNOWN_BYTES = 40;
/** Longest number or boolean as JSON text, 64-bit ones in quotes. */
const NUMBER_BYTES = 24;
/** Quotes around a text. */
const QUOTES = 2;

/** Room for white space between the parts of a body that was written for people to read. */
const INDENTATION = 64 * 1024;

/**
 * Bytes of the largest valid request of a service in plain UTF-8 JSON, derived
 * from the rules of the contract; no binary form is larger.
 *
 * @throws when a field of a request has no upper bound, naming it
 */
export function bodyLimit(service: DescService): number {
  return INDENTATION + Math.max(...service.methods.map(({ input }) => messageBytes(input)));
}

function messageBytes(message: DescMessage): number {
  if (message.typeName.startsWith("google.protobuf.")) return WELL_KNOWN_BYTES;
  const single = message.fields.filter((field) => !field.oneof).map(memberBytes);
  const oneofs = message.oneofs.map((oneof) => Math.max(...oneof.fields.map(memberBytes)));
  return sum([...single, ...oneofs]) + 2;
}

/** A field with its name, colon and comma. */
function memberBytes(field: DescField): number {
  return field.jsonName.length + QUOTES + 2 + fieldBytes(field);
}

function fieldBytes(field: DescField): number {
  const rules = rulesOf(field);
  if (field.fieldKind === "list") {
    const most = rules?.type.case === "repeated" ? rules.type.value.maxItems : 0n;
    const items = rules?.type.case === "repeated" ? rules.type.value.items : undefined;
    const count = most || longestAllowed(rules);
    if (!count) throw new Error(`${field} has no upper bound`);
    return Number(count) * (elementBytes(field, items) + 1) + 2;
  }
  if (field.fieldKind === "map") {
    const map = rules?.type.case === "map" ? rules.type.value : undefined;
    if (!map?.maxPairs) throw new Error(`${field} has no upper bound`);
    const key = textBytes(field, map.keys);
    const value =
      field.mapKind === "message" ? messageBytes(field.message) : mapValueBytes(field, map.values);
    return Number(map.maxPairs) * (key + value + 2) + 2;
  }
  return elementBytes(field, rules);
}

function elementBytes(field: DescField, rules: FieldRules | undefined): number {
  if (field.message?.typeName === "google.protobuf.FieldMask") return maskBytes(field, rules);
  if (field.message) return messageBytes(field.message);
  if (field.enum) return enumBytes(field.enum);
  if (field.scalar === ScalarType.STRING) return textBytes(field, rules);
  if (field.scalar === ScalarType.BYTES) return base64Bytes(field, rules);
  return NUMBER_BYTES;
}

function base64Bytes(field: DescField, rules: FieldRules | undefined): number {
  const most = rules?.type.case === "bytes" ? rules.type.value.maxLen : 0n;
  if (!most) throw new Error(`${field} has no upper bound`);
  return Math.ceil(Number(most) / 3) * 4 + QUOTES;
}

function mapValueBytes(field: DescField, rules: FieldRules | undefined): number {
  if (field.enum) return enumBytes(field.enum);
  if (field.scalar === ScalarType.BYTES) return base64Bytes(field, rules);
  return field.scalar === ScalarType.STRING ? textBytes(field, rules) : NUMBER_BYTES;
}

function textBytes(field: DescField, rules: FieldRules | undefined): number {
  const text = rules?.type.case === "string" ? rules.type.value : undefined;
  if (text?.wellKnown.case === "uuid") return UUID_BYTES + QUOTES;
  if (text && text.in.length > 0) return Math.max(...text.in.map((word) => word.length)) + QUOTES;
  if (text?.pattern.endsWith("{12}$")) return UUID_BYTES + QUOTES;
  const characters = Number(text?.maxLen ?? 0n) || longestAllowed(rules);
  if (!characters) throw new Error(`${field} has no upper bound`);
  return characters * CHARACTER_BYTES + QUOTES;
}

/** The bound in a rule such as `size(this) <= 80`; 0 when no rule has one. */
function longestAllowed(rules: FieldRules | undefined): number {
  const bounds = (rules?.cel ?? []).flatMap(({ expression }) => {
    const found = /size\(this\) <= (\d+)/.exec(expression)?.[1];
    return found === undefined ? [] : [Number(found)];
  });
  return bounds.length > 0 ? Math.min(...bounds) : 0;
}

/** A field mask in JSON: its paths in one text, with commas between them. */
function maskBytes(field: DescField, rules: FieldRules | undefined): number {
  const expressions = (rules?.cel ?? []).map(({ expression }) => expression).join();
  const paths = /size\(this\.paths\) <= (\d+)/.exec(expressions)?.[1];
  const characters = /size\(path\) <= (\d+)/.exec(expressions)?.[1];
  if (!paths || !characters) throw new Error(`${field} has no upper bound`);
  return Number(paths) * (Number(characters) * CHARACTER_BYTES + 1) + QUOTES;
}

function enumBytes(values: DescEnum): number {
  return Math.max(...values.values.map(({ name }) => name.length)) + QUOTES;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
