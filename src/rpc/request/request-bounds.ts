import type { DescEnum, DescField, DescMessage } from "@bufbuild/protobuf";
import { getOption, ScalarType } from "@bufbuild/protobuf";
import type { FieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { max_body_bytes as maxBodyBytes } from "#gen/runner/v1/options_pb.js";
import { isId, rulesOf } from "../rules.ts";

/**
 * Maximum size of the body of any operation except those with more than this in
 * `bytes` fields: 16 MiB. The contract limits the content of a request; this
 * limits the server's work for one.
 */
export const MAX_BODY_BYTES = 16 * 1024 * 1024;

/**
 * Number of parts and keys that every request may have: a body of so few is
 * cheap, whatever its message holds, and one with unknown fields has room for
 * them.
 */
const MIN_PARTS = 1_024;

/**
 * Maximum number of parts, keys and records of a request that states no bound for its body. The largest one of a single
 * thing has half of it: this is for requests of many, whose parts may not all be as large as each may be.
 */
export const MAX_PARTS = 131_072;

/** Levels of nesting that every request may have. */
const MIN_DEPTH = 32;

/**
 * Maximum bytes of a character: past U+FFFF it is two escapes of six where JSON
 * is written in ASCII alone, as Python does by default. In UTF-8 it is four.
 */
export const CHARACTER_BYTES = 12;
const UUID_BYTES = 36;
/** Enough for `"2026-01-02T03:04:05.123456789Z"` and `"-315576000000.000000001s"`. */
const WELL_KNOWN_BYTES = 40;
/** Maximum length of a number or boolean as JSON text, 64-bit ones in quotes. */
const NUMBER_BYTES = 24;
/** The quotes around a text. */
const QUOTES = 2;

/** Bytes for white space between the parts of a body that was formatted for people. */
const INDENTATION = 64 * 1024;

/** The upper bounds of a valid request, derived from the rules of the contract. */
export interface RequestBounds {
  /** Size of the body as it is parsed: after decompression, without an envelope. */
  readonly bytes: number;
  /** Commas and opening brackets of JSON, which are at least as many as its elements and members. */
  readonly parts: number;
  /** Colons of JSON: members of objects. */
  readonly keys: number;
  /** Levels of nested objects, lists and messages. */
  readonly depth: number;
  /** Fields of the binary form at all levels, elements of packed lists counted one by one. */
  readonly records: number;
  /** UTF-16 code units of the longest text of a field mask. */
  readonly maskCharacters: number;
  /** Characters of the longest text of a field that holds no bytes. */
  readonly textCharacters: number;
}

/**
 * Computes the bounds of a request. Its bytes are those of its largest valid form
 * in JSON whose texts are all escapes, at most {@link MAX_BODY_BYTES}; no binary
 * form is larger. A message whose `bytes` fields alone are larger, such as ten
 * images of 4 MiB, keeps its whole size: each of them is one long text, and cheap
 * to read. A message may state a lower bound for its body, `max_body_bytes`.
 *
 * @throws when a field has no upper bound, naming it
 */
export function requestBounds(request: DescMessage): RequestBounds {
  const size = messageSize(request);
  const bytes = size.bytes + INDENTATION;
  const stated = getOption(request, maxBodyBytes) || Number.POSITIVE_INFINITY;
  const allowed = Math.min(bytes, stated);
  const most = Number.isFinite(stated) ? Number.POSITIVE_INFINITY : MAX_PARTS;
  const partsOf = (parts: number) => Math.min(Math.max(parts, MIN_PARTS), most);
  return {
    bytes: size.base64 > MAX_BODY_BYTES ? allowed : Math.min(allowed, MAX_BODY_BYTES),
    parts: partsOf(size.parts),
    keys: partsOf(size.keys),
    depth: Math.max(size.depth, MIN_DEPTH),
    records: partsOf(size.records),
    maskCharacters: size.mask,
    textCharacters: Math.max(size.text, size.mask),
  };
}

/** The largest valid form of a value: `base64` is the part of `bytes` in `bytes` fields. */
interface Size {
  readonly bytes: number;
  readonly base64: number;
  readonly parts: number;
  readonly keys: number;
  readonly depth: number;
  readonly records: number;
  readonly mask: number;
  readonly text: number;
}

const NOTHING: Size = { bytes: 0, base64: 0, parts: 0, keys: 0, depth: 0, records: 0, mask: 0, text: 0 };

function text(bytes: number): Size {
  return { ...NOTHING, bytes };
}

/** Adds the sizes of two consecutive values inside the same value. */
function plus(one: Size, other: Size): Size {
  return {
    bytes: one.bytes + other.bytes,
    base64: one.base64 + other.base64,
    parts: one.parts + other.parts,
    keys: one.keys + other.keys,
    depth: Math.max(one.depth, other.depth),
    records: one.records + other.records,
    mask: Math.max(one.mask, other.mask),
    text: Math.max(one.text, other.text),
  };
}

/** Returns the larger size, in each respect. */
function either(one: Size, other: Size): Size {
  return {
    ...plus(one, other),
    bytes: Math.max(one.bytes, other.bytes),
    base64: Math.max(one.base64, other.base64),
    parts: Math.max(one.parts, other.parts),
    keys: Math.max(one.keys, other.keys),
    records: Math.max(one.records, other.records),
  };
}

function times(count: number, size: Size): Size {
  return {
    ...size,
    bytes: count * size.bytes,
    base64: count * size.base64,
    parts: count * size.parts,
    keys: count * size.keys,
    records: count * size.records,
  };
}

/** Adds an object or a list around its members: brackets, one level, and one part even when it is empty. */
function enclosed(size: Size): Size {
  return { ...size, bytes: size.bytes + 2, parts: Math.max(size.parts, 1), depth: size.depth + 1 };
}

/** The sizes of messages that are known: many requests hold the same ones. */
const sizes = new WeakMap<DescMessage, Size>();

function messageSize(message: DescMessage): Size {
  const known = sizes.get(message);
  if (known) return known;
  const size = computeMessageSize(message);
  sizes.set(message, size);
  return size;
}

function computeMessageSize(message: DescMessage): Size {
  // Seconds and nanoseconds.
  if (isWellKnown(message)) return { ...text(WELL_KNOWN_BYTES), depth: 1, records: 2 };
  const single = message.fields.filter((field) => !field.oneof).map(memberSize);
  const oneofs = message.oneofs.map((oneof) => oneof.fields.map(memberSize).reduce(either, NOTHING));
  return enclosed([...single, ...oneofs].reduce(plus, NOTHING));
}

function isWellKnown({ typeName }: DescMessage): boolean {
  return typeName.startsWith("google.protobuf.");
}

/** Adds the name, colon and comma of a field. */
function memberSize(field: DescField): Size {
  const value = fieldSize(field);
  return {
    ...value,
    bytes: value.bytes + field.jsonName.length + QUOTES + 2,
    parts: value.parts + 1,
    keys: value.keys + 1,
    records: value.records + (field.fieldKind === "list" || field.fieldKind === "map" ? 0 : 1),
  };
}

function fieldSize(field: DescField): Size {
  const rules = rulesOf(field);
  if (field.fieldKind === "list") {
    const most = rules?.type.case === "repeated" ? rules.type.value.maxItems : 0n;
    const items = rules?.type.case === "repeated" ? rules.type.value.items : undefined;
    if (!most) throw new Error(`${field} has no upper bound`);
    const element = plus(elementSize(field, items), { ...NOTHING, bytes: 1, parts: 1, records: 1 });
    return enclosed(times(Number(most), element));
  }
  if (field.fieldKind === "map") {
    const map = rules?.type.case === "map" ? rules.type.value : undefined;
    if (!map?.maxPairs) throw new Error(`${field} has no upper bound`);
    const value = field.mapKind === "message" ? messageSize(field.message) : mapValueSize(field, map.values);
    // In binary an entry is a message of its key and its value.
    const entry = plus(plus(textSize(field, map.keys), value), {
      ...NOTHING,
      bytes: 2,
      parts: 1,
      keys: 1,
      records: 3,
    });
    return enclosed(times(Number(map.maxPairs), entry));
  }
  return elementSize(field, rules);
}

function elementSize(field: DescField, rules: FieldRules | undefined): Size {
  if (field.message?.typeName === "google.protobuf.FieldMask") return maskSize(field, rules);
  if (field.message) return messageSize(field.message);
  if (field.enum) return enumSize(field.enum);
  if (field.scalar === ScalarType.STRING) return textSize(field, rules);
  if (field.scalar === ScalarType.BYTES) return base64Size(field, rules);
  return text(NUMBER_BYTES);
}

function base64Size(field: DescField, rules: FieldRules | undefined): Size {
  const most = rules?.type.case === "bytes" ? rules.type.value.maxLen : 0n;
  if (!most) throw new Error(`${field} has no upper bound`);
  const bytes = Math.ceil(Number(most) / 3) * 4 + QUOTES;
  return { ...text(bytes), base64: bytes };
}

function mapValueSize(field: DescField, rules: FieldRules | undefined): Size {
  if (field.enum) return enumSize(field.enum);
  if (field.scalar === ScalarType.BYTES) return base64Size(field, rules);
  return field.scalar === ScalarType.STRING ? textSize(field, rules) : text(NUMBER_BYTES);
}

function textSize(field: DescField, rules: FieldRules | undefined): Size {
  const allowed = rules?.type.case === "string" ? rules.type.value : undefined;
  if (isId(rules)) return text(UUID_BYTES + QUOTES);
  if (allowed && allowed.in.length > 0) {
    return text(Math.max(...allowed.in.map((word) => word.length)) + QUOTES);
  }
  const characters = Number(allowed?.maxLen ?? 0n);
  if (!characters) throw new Error(`${field} has no upper bound`);
  return { ...text(characters * CHARACTER_BYTES + QUOTES), text: characters };
}

/** Returns the size of a field mask in JSON: its paths in one text, with commas between them. Only CEL can bound them. */
function maskSize(field: DescField, rules: FieldRules | undefined): Size {
  const expressions = (rules?.cel ?? []).map(({ expression }) => expression).join();
  const paths = Number(/size\(this\.paths\) <= (\d+)/.exec(expressions)?.[1]);
  const characters = Number(/size\(path\) <= (\d+)/.exec(expressions)?.[1]);
  if (!paths || !characters) throw new Error(`${field} has no upper bound`);
  const bytes = paths * (characters * CHARACTER_BYTES + 1) + QUOTES;
  return { ...text(bytes), depth: 1, records: paths, mask: paths * (2 * characters + 1) };
}

function enumSize(values: DescEnum): Size {
  return text(Math.max(...values.values.map(({ name }) => name.length)) + QUOTES);
}
