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
 * Past this a body is parsed on a thread of its own. The largest
 * valid request below it is parsed and checked in 13 ms (StartAgent, 110 kB); the
 * thread takes time to start, and hands each request over in binary.
 */
const LARGE_BYTES = 128 * 1024;

/** Reads the requests of one operation. */
export interface RequestReading {
  /** Full name of the operation, such as `service.v1.ProjectService/GetProject`. */
  readonly operation: string;
  readonly input: DescMessage;
  /** Of the largest request, unpacked. */
  readonly limitBytes: number;
  /** Whether most of the largest request is in `bytes` fields. */
  readonly hasLargeBytes: boolean;
  /** For the protocol layer, which reads small requests itself. */
  readonly jsonOptions: ReturnType<typeof jsonForm>;
  /** Reads requests and writes answers in both forms. */
  readonly serialization: MethodSerializationLookup<DescMessage, DescMessage>;
  /** Whether a body is to be parsed on a thread of its own. */
  isLarge(bytes: Uint8Array): boolean;
  /**
   * Counts what a body is made of before anything is built from it.
   *
   * @throws ConnectError BODY_TOO_COMPLEX when no valid request has as much
   */
  count(isBinary: boolean, bytes: Uint8Array): void;
  /**
   * Returns the request that a body holds, once it is counted. Large bytes in it
   * are a part of the body, which is changed.
   *
   * @throws ConnectError that says what is wrong with the body
   */
  parse(isBinary: boolean, bytes: Uint8Array): MessageShape<DescMessage>;
}

/** Returns how the requests of an operation are read, within the bounds of their message. */
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
 * How the body of an operation in JSON is read before the parser sees it. What
 * the parser would take though it is no duration or instant is refused. The
 * parser refuses unknown fields and unknown names of enums together: where a
 * setting allows the former, they are taken out. Empty lists and maps, which a
 * message cannot tell from absent ones, are named in its mask where it has one,
 * and so are messages that cannot be empty.
 */
function jsonForm(method: DescMethod, allowUnknownFields: boolean, maskCharacters: number) {
  const { input } = method;
  const times = timeForms(input);
  const isMasked = hasUpdateMask(input);
  const edits = [
    // First, since a message of nothing but unknown fields is empty once they are out, and was not meant so.
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
          // What is no JSON is left for the parser, which refuses it in the words of every other operation.
          if (json === undefined) return text;
          if (isMasked) checkMask(json, maskCharacters);
          if (isTimed) times?.check(json);
          const edited = edits.reduce<unknown>((value, edit) => edit(input, value), json);
          return edited === json ? text : JSON.stringify(edited);
        }
      : readJsonText;
  return { ...JSON_OPTIONS, ignoreUnknownFields: false, textDecoder: { decode } };
}

/** A mask is one text, which is taken apart at its commas. */
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
