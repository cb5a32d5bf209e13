import { isAscii } from "node:buffer";
import type { DescField, DescMessage, DescMethod, MessageShape } from "@bufbuild/protobuf";
import {
  createMethodSerializationLookup,
  type MethodSerializationLookup,
  validateReadWriteMaxBytes,
} from "@connectrpc/connect/protocol";
import { isJsonObject } from "../../domain/json-object.ts";
import { addClearedFieldsToMask, hasUpdateMask } from "../cleared-fields.ts";
import { countBinary } from "./binary-count.ts";
import { countJson } from "./json-count.ts";
import { JSON_OPTIONS } from "./json-options.ts";
import { takeLongTexts } from "./long-texts.ts";
import { MAX_BODY_BYTES, requestBounds } from "./request-bounds.ts";
import { tooComplex } from "./too-complex.ts";
import { rejectsUnknownFields } from "./unknown-fields.ts";
import { valueForms } from "./value-forms.ts";

/**
 * Bodies above this size are parsed on a separate thread. The largest valid
 * request below it is parsed and checked in 13 ms (StartAgent, 110 kB); the
 * thread takes time to start, and transfers each request in binary.
 */
const LARGE_BYTES = 128 * 1024;

/** Reads the requests of one operation. */
export interface RequestReading {
  /** The full name of the operation, such as `service.v1.ProjectService/GetProject`. */
  readonly operation: string;
  readonly input: DescMessage;
  /** The size of the largest request, unpacked. */
  readonly limitBytes: number;
  /** True if most of the largest request is in `bytes` fields. */
  readonly hasLargeBytes: boolean;
  /** The options for the protocol layer, which reads small requests itself. */
  readonly jsonOptions: ReturnType<typeof jsonForm>;
  /** Reads requests and writes responses in both forms. */
  readonly serialization: MethodSerializationLookup<DescMessage, DescMessage>;
  /** Returns whether a body is to be parsed on a separate thread. */
  isLarge(bytes: Uint8Array): boolean;
  /**
   * Counts the parts of a body before it is parsed.
   *
   * @throws ConnectError BODY_TOO_COMPLEX when no valid request has as many
   */
  count(isBinary: boolean, bytes: Uint8Array): void;
  /**
   * Returns the request in a counted body. Its large bytes share the memory of the
   * body, which is changed.
   *
   * @throws ConnectError for an invalid body
   */
  parse(isBinary: boolean, bytes: Uint8Array): MessageShape<DescMessage>;
}

/** Creates the reading of an operation's requests, within the bounds of their message. */
export function requestReading(method: DescMethod, allowUnknownFields: boolean): RequestReading {
  const { input } = method;
  const bounds = requestBounds(input);
  const hasLargeBytes = bounds.bytes > MAX_BODY_BYTES;
  const jsonOptions = jsonForm(method, allowUnknownFields, bounds.maskCharacters);
  const limits = validateReadWriteMaxBytes(bounds.bytes, undefined, undefined);
  const serialization = createMethodSerializationLookup(method, undefined, jsonOptions, limits);
  const count = (isBinary: boolean, bytes: Uint8Array): void => {
    if (isBinary) countBinary(input, bytes, bounds);
    else countJson(bytes, bounds);
  };
  return {
    operation: `${method.parent.typeName}/${method.name}`,
    input,
    limitBytes: bounds.bytes,
    hasLargeBytes,
    jsonOptions,
    serialization,
    // The pagination of a list may come from the URL, and is checked with the rest of the request.
    isLarge: (bytes) => bytes.length > LARGE_BYTES && !input.field.pagination,
    count,
    parse(isBinary, bytes) {
      count(isBinary, bytes);
      const { parse } = serialization.getI(isBinary);
      if (isBinary || bytes.length <= LARGE_BYTES || !hasLargeBytes) return parse(bytes);
      const texts = takeLongTexts(bytes, bounds.textCharacters);
      const message = parse(texts.rest);
      texts.putBack(input, message);
      return message;
    },
  };
}

/**
 * Returns the options with which an operation's JSON body is prepared for the
 * parser. Values that the parser would accept though they are no duration,
 * timestamp or integer are refused. The parser refuses unknown fields and unknown names of
 * enums together: where a setting allows the former, they are removed. Empty
 * lists and maps, which a message cannot distinguish from absent ones, are added
 * to its mask where it has one, and so are messages that cannot be empty.
 */
function jsonForm(method: DescMethod, allowUnknownFields: boolean, maskCharacters: number) {
  const { input } = method;
  const forms = valueForms(input);
  const isMasked = hasUpdateMask(input);
  const edits = [
    // First, because a message with only unknown fields would be empty once they are removed, and an empty
    // message clears its field.
    ...(isMasked ? [addClearedFieldsToMask] : []),
    ...(allowUnknownFields && !rejectsUnknownFields(method) ? [skipUnknownFields] : []),
  ];
  const hasInnerMasks = !isMasked && maskCharacters > 0;
  const decode =
    forms || edits.length > 0 || hasInnerMasks
      ? (data: Uint8Array) => {
          const text = readJsonText(data);
          const isMistakable = forms?.mayBeIn(text);
          if (!isMistakable && edits.length === 0 && !hasInnerMasks) return text;
          const json = parsed(text);
          // Invalid JSON is left for the parser, which refuses it in the words of every other operation.
          if (json === undefined) return text;
          if (isMasked) checkMask(json, maskCharacters);
          if (hasInnerMasks) checkInnerMasks(json, maskCharacters);
          if (isMistakable) forms?.check(json);
          const edited = edits.reduce<unknown>((value, edit) => edit(input, value), json);
          return edited === json ? text : JSON.stringify(edited);
        }
      : readJsonText;
  return { ...JSON_OPTIONS, ignoreUnknownFields: false, textDecoder: { decode } };
}

/** Checks the length of a mask: it is one text, which is split at its commas. */
function checkMask(json: unknown, characters: number): void {
  const { updateMask, update_mask } = (json ?? {}) as Record<string, unknown>;
  for (const mask of [updateMask, update_mask]) {
    if (typeof mask === "string" && mask.length > characters) throw tooComplex("mask_characters", characters);
  }
}

/** Checks the length of each mask of the requests that a request holds. */
function checkInnerMasks(json: unknown, characters: number): void {
  if (typeof json !== "object" || json === null) return;
  checkMask(json, characters);
  for (const value of Object.values(json)) checkInnerMasks(value, characters);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Escapes in the order in which they are tried: both halves of a character, one half alone, any other. */
const ESCAPES =
  /\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|(\\u[dD][89a-fA-F][\da-fA-F]{2})|\\./gs;
const HALF_ESCAPE = /\\u[dD][89a-fA-F]/;
const PAST_FFFF = /[\ud800-\udfff]/;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Returns the text of a JSON body; an empty one is `{}`. Broken UTF-8 is refused,
 * not replaced by question marks, and so is an escape such as `\ud800` that is
 * half a character: no stored text and no gRPC status could hold it.
 *
 * @throws Error whose message can be sent in every protocol
 */
export function readJsonText(data: Uint8Array): string {
  // Many clients send no bytes at all for a request without fields.
  if (data.length === 0) return "{}";
  // 56 MB of images in base64 take 34 ms this way, and 86 ms through the decoder.
  const isPlain = isAscii(data);
  const text = isPlain ? bufferOf(data).toString("latin1") : utf8.decode(data);
  if (HALF_ESCAPE.test(text)) requireWholeSurrogates(text);
  // Parsed twice, as the parser quotes some letters around an error and may cut one in two.
  if (!isPlain && PAST_FFFF.test(text)) requireValidJson(text);
  return text;
}

function bufferOf(data: Uint8Array): Buffer {
  return data instanceof Buffer ? data : Buffer.from(data.buffer, data.byteOffset, data.length);
}

function requireWholeSurrogates(text: string): void {
  for (const [, half] of text.matchAll(ESCAPES)) {
    if (half) throw new Error(`the escape ${half} is half a character without its other half`);
  }
}

function requireValidJson(text: string): void {
  try {
    JSON.parse(text);
  } catch (error) {
    throw new Error((error as Error).message.toWellFormed());
  }
}

/**
 * Returns a copy of a JSON message without the fields that the contract does not
 * know, at any depth. Values are left as they are: unknown names of enums stay,
 * and are refused by the parser behind it.
 */
export function skipUnknownFields(message: DescMessage, json: unknown): unknown {
  // Well-known types have a JSON form of their own, without unknown fields.
  if (!isJsonObject(json) || message.typeName.startsWith("google.protobuf.")) return json;
  const known = knownNames(message);
  return Object.fromEntries(
    Object.entries(json).flatMap(([name, value]) => {
      const field = known.get(name);
      return field ? [[name, fieldValue(field, value)]] : [];
    }),
  );
}

function fieldValue(field: DescField, value: unknown): unknown {
  const nested = field.message;
  if (!nested) return value;
  if (field.fieldKind === "list") {
    return Array.isArray(value) ? value.map((element) => skipUnknownFields(nested, element)) : value;
  }
  if (field.fieldKind === "map") {
    if (!isJsonObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, element]) => [key, skipUnknownFields(nested, element)]),
    );
  }
  return skipUnknownFields(nested, value);
}

const names = new Map<DescMessage, ReadonlyMap<string, DescField>>();

/**
 * Returns the fields by name. Both spellings of a field are JSON names:
 * lowerCamelCase and the one of the .proto file.
 */
function knownNames(message: DescMessage): ReadonlyMap<string, DescField> {
  let known = names.get(message);
  if (!known) {
    known = new Map(
      message.fields.flatMap((field) => [[field.jsonName, field] as const, [field.name, field] as const]),
    );
    names.set(message, known);
  }
  return known;
}
