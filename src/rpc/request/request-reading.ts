import type { DescMessage, DescMethod, MessageShape } from "@bufbuild/protobuf";
import {
  createMethodSerializationLookup,
  type MethodSerializationLookup,
  validateReadWriteMaxBytes,
} from "@connectrpc/connect/protocol";
import { addClearedFieldsToMask, hasUpdateMask } from "../cleared-fields.ts";
import { countBinary } from "./binary-count.ts";
import { countJson } from "./json-count.ts";
import { JSON_OPTIONS } from "./json-options.ts";
import { readJsonText } from "./json-text.ts";
import { takeLongTexts } from "./long-texts.ts";
import { MAX_BODY_BYTES, requestBounds } from "./request-bounds.ts";
import { skipUnknownFields } from "./skip-unknown-fields.ts";
import { timeForms } from "./time-forms.ts";
import { tooComplex } from "./too-complex.ts";
import { rejectsUnknownFields } from "./unknown-fields.ts";

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
   * Counts the parts of a body before anything is built from it.
   *
   * @throws ConnectError BODY_TOO_COMPLEX when no valid request has as many
   */
  count(isBinary: boolean, bytes: Uint8Array): void;
  /**
   * Returns the request in a body, once it is counted. Large bytes in it share
   * the memory of the body, which is changed.
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
 * parser. Values that the parser would accept though they are no duration or
 * timestamp are refused. The parser refuses unknown fields and unknown names of
 * enums together: where a setting allows the former, they are removed. Empty
 * lists and maps, which a message cannot distinguish from absent ones, are added
 * to its mask where it has one, and so are messages that cannot be empty.
 */
function jsonForm(method: DescMethod, allowUnknownFields: boolean, maskCharacters: number) {
  const { input } = method;
  const times = timeForms(input);
  const isMasked = hasUpdateMask(input);
  const edits = [
    // First, since a message of nothing but unknown fields is empty once they are removed, and was not
    // meant so.
    ...(isMasked ? [addClearedFieldsToMask] : []),
    ...(allowUnknownFields && !rejectsUnknownFields(method) ? [skipUnknownFields] : []),
  ];
  const decode =
    times || edits.length > 0
      ? (data: Uint8Array) => {
          const text = readJsonText(data);
          const isTimed = times?.mayBeIn(text);
          if (!isTimed && edits.length === 0) return text;
          const json = parsed(text);
          // Invalid JSON is left for the parser, which refuses it in the words of every other operation.
          if (json === undefined) return text;
          if (isMasked) checkMask(json, maskCharacters);
          if (isTimed) times?.check(json);
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

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
