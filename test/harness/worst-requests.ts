import { gzipSync } from "node:zlib";
import {
  type DescField,
  type DescMessage,
  type DescMethod,
  fromJson,
  type JsonValue,
  toBinary,
} from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { CONTRACT } from "../../src/rpc/contract.ts";
import { requestBounds } from "../../src/rpc/request/request-bounds.ts";
import { jsonBytes } from "../contract/json-bytes.ts";
import { largest } from "../contract/largest-request.ts";
import { isWellKnown } from "../contract/reach.ts";
import type { Answer } from "./call.ts";
import { packageOf } from "./call-stream.ts";
import type { ReachableServer } from "./server.ts";

/** A request that costs the server more than it costs the sender. */
export interface WorstRequest {
  /** Such as `WorkflowService/GetWorkflow workflowId: empty objects, gzip`. */
  readonly name: string;
  readonly operation: string;
  readonly contentType: string;
  readonly isCompressed: boolean;
  /** True when the request is valid. */
  readonly isValid: boolean;
  /** Bytes that a server which parses before it counts would allocate for each byte sent. */
  readonly cost: number;
  /** Built on demand: some are 56 MB. */
  readonly body: () => Buffer;
}

interface Shape {
  readonly kind: string;
  readonly isBinary: boolean;
  readonly isValid?: boolean;
  /** Returns the number of objects, elements and entries that a parser builds from so many bytes. */
  readonly built: (bytes: number) => number;
  readonly body: (bytes: number) => Buffer;
}

/** Approximate size of a parsed object. */
const BYTES_PER_OBJECT = 100;
/** Compression ratio of repeated bytes. */
const COMPRESSION_RATIO = 1_000;

/**
 * Returns the most expensive requests of the contract for a server that parses before it counts,
 * derived from the descriptors: floods of elements, members, levels and unknown fields at every
 * field of every request, in JSON and in binary, plain and compressed, and the largest valid
 * request of each operation.
 *
 * @param each maximum number of requests of one kind, so that no kind crowds out the others
 */
export function worstRequests(count: number, each = 1): WorstRequest[] {
  const all = CONTRACT.flatMap((service) =>
    service.methods.flatMap((method) => requestsOf(`${service.name}/${method.name}`, method)),
  );
  const taken = new Map<string, number>();
  const worst = all
    .sort((one, other) => other.cost - one.cost)
    .filter(({ kind }) => {
      taken.set(kind, (taken.get(kind) ?? 0) + 1);
      return (taken.get(kind) ?? 0) <= each;
    });
  return worst.slice(0, count);
}

function requestsOf(operation: string, method: DescMethod): (WorstRequest & { kind: string })[] {
  if (method.methodKind !== "unary") return [];
  const limit = requestBounds(method.input).bytes;
  const legal = largestShape(method.input, limit);
  const shapes = [...fieldShapes(method.input, [], new Set()), ...legal];
  return shapes.flatMap(({ kind, isBinary, isValid = false, built, body }) =>
    [false, true].flatMap((isCompressed) => {
      if (isValid && isCompressed) return [];
      const costBytes = built(limit) * BYTES_PER_OBJECT + limit;
      const what = kind.slice(kind.lastIndexOf(": ") + 2);
      return [
        {
          name: `${operation} ${kind}${isCompressed ? ", gzip" : ""}`,
          kind: isValid ? `${operation}${isBinary}` : `${what}${isBinary}${isCompressed}`,
          operation,
          contentType: isBinary ? "application/proto" : "application/json",
          isCompressed,
          isValid,
          // A valid request counts with its whole cost: nothing rejects it.
          cost: isValid ? costBytes : costBytes / (isCompressed ? 1 / COMPRESSION_RATIO : 1),
          body: () => (isCompressed ? gzipSync(body(limit)) : body(limit)),
        },
      ];
    }),
  );
}

/** Returns floods at every field of the request, at any depth. */
function fieldShapes(message: DescMessage, path: readonly DescField[], seen: Set<DescMessage>): Shape[] {
  if (seen.has(message) || isWellKnown(message)) return [];
  seen.add(message);
  return message.fields.flatMap((field) => {
    const here = [...path, field];
    const name = here.map(({ jsonName }) => jsonName).join(".");
    const own: Shape[] = [
      jsonFlood(`${name}: empty objects`, here, "[", "{}", "]"),
      jsonFlood(`${name}: numbers`, here, "[", "1", "]"),
      jsonFlood(`${name}: members`, here, "{", '"a":1', "}"),
      {
        kind: `${name}: levels`,
        isBinary: false,
        built: (bytes) => bytes / 2,
        body: (bytes) => inJson(here, Buffer.alloc(bytes / 2 - 500, "["), Buffer.alloc(bytes / 2 - 500, "]")),
      },
    ];
    if (field.message?.typeName === "google.protobuf.FieldMask") {
      own.push({
        kind: `${name}: mask`,
        isBinary: false,
        built: (bytes) => bytes,
        body: (bytes) => inJson(here, Buffer.from('"'), Buffer.alloc(bytes - 1_000, ","), Buffer.from('"')),
      });
    }
    if (field.fieldKind === "list" || field.fieldKind === "map") {
      own.push({
        kind: `${name}: empty elements`,
        isBinary: true,
        built: (bytes) => bytes / 2,
        body: (bytes) => inBinary(path, elements(field.number, bytes - 1_000)),
      });
    }
    if (!field.message) return own;
    const unknown: Shape = {
      kind: `${name}: unknown fields`,
      isBinary: true,
      built: (bytes) => bytes / 3,
      body: (bytes) => inBinary(here, unknownFields(bytes - 1_000)),
    };
    return [...own, unknown, ...fieldShapes(field.message, here, seen)];
  });
}

function jsonFlood(
  kind: string,
  path: readonly DescField[],
  open: string,
  each: string,
  close: string,
): Shape {
  return {
    kind,
    isBinary: false,
    built: (bytes) => bytes / (each.length + 1),
    body: (bytes) => {
      const flood = Buffer.alloc(
        Math.floor((bytes - 1_000) / (each.length + 1)) * (each.length + 1),
        `${each},`,
      );
      return inJson(path, Buffer.from(open), flood, Buffer.from(each + close));
    },
  };
}

/** Encodes a value as the field at the end of a path, with one element of each list on the way. */
function inJson(path: readonly DescField[], ...value: readonly Buffer[]): Buffer {
  const open = path.map(({ jsonName }) => `{"${jsonName}":`);
  const isListed = (index: number) => index < path.length - 1 && path[index]?.fieldKind === "list";
  const before = open.map((text, index) => (isListed(index) ? `${text}[` : text)).join("");
  const after = open.map((_, index) => (isListed(index) ? "]}" : "}")).reverse();
  return Buffer.concat([Buffer.from(before), ...value, Buffer.from(after.join(""))]);
}

function inBinary(path: readonly DescField[], value: Buffer): Buffer {
  return path.reduceRight<Buffer>(
    (inner, { number }) =>
      Buffer.from(new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(inner).finish()),
    value,
  );
}

function elements(number: number, bytes: number): Buffer {
  const one = new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(new Uint8Array()).finish();
  return Buffer.alloc(Math.floor(bytes / one.length) * one.length, one);
}

function unknownFields(bytes: number): Buffer {
  const one = new BinaryWriter().tag(15_000, WireType.Varint).uint32(0).finish();
  return Buffer.alloc(Math.floor(bytes / one.length) * one.length, one);
}

/**
 * Returns the largest valid request in both formats, with fewer elements where the whole exceeds
 * the limit of bytes.
 */
function largestShape(input: DescMessage, limit: number): Shape[] {
  const json = () => trimmed(largest(input), limit);
  const built = () => requestBounds(input).parts;
  return [
    {
      kind: "the largest: legal",
      isBinary: false,
      isValid: true,
      built,
      body: () => Buffer.from(JSON.stringify(json())),
    },
    {
      kind: "the largest: legal",
      isBinary: true,
      isValid: true,
      built,
      body: () => Buffer.from(toBinary(input, fromJson(input, json()))),
    },
  ];
}

function trimmed(value: JsonValue, limit: number): JsonValue {
  let kept = value;
  while (jsonBytes(kept) > limit) kept = halved(kept);
  return kept;
}

/** Returns a copy with half of the elements of its largest list. */
function halved(value: JsonValue): JsonValue {
  if (Array.isArray(value) && value.length > 1) return value.slice(0, Math.ceil(value.length / 2));
  if (typeof value === "string") return value.slice(0, value.length / 2);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([, one], [, other]) => jsonBytes(other) - jsonBytes(one));
  const [largestEntry] = entries;
  if (!largestEntry) return value;
  const [name, part] = largestEntry;
  if (Array.isArray(value)) return [halved(part)];
  return { ...value, [name]: halved(part) };
}

/** Sends a request; operations of runners are called with the runner's token. */
export async function sendWorst(
  server: Pick<ReachableServer, "url" | "token">,
  { operation, contentType, isCompressed }: WorstRequest,
  body: Buffer,
  runnerToken: string,
): Promise<Answer> {
  const service = packageOf(operation);
  const res = await fetch(`${server.url}/api/${service}.${operation}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${service === "runner.v1" ? runnerToken : server.token}`,
      "content-type": contentType,
      ...(isCompressed && { "content-encoding": "gzip" }),
    },
    body: new Uint8Array(body),
  });
  const bytes = await res.bytes();
  const isJson = res.headers.get("content-type") === "application/json";
  return {
    status: res.status,
    header: res.headers,
    body: isJson ? JSON.parse(Buffer.from(bytes).toString()) : undefined,
  };
}
