import { gzipSync } from "node:zlib";
import { type DescMethod, fromJson, toBinary } from "@bufbuild/protobuf";
import type { Random } from "../harness/random.ts";
import { brokenFrame, frame, mutateBytes } from "./byte-mutation.ts";
import { mutateJson, mutateText, randomJson } from "./json-mutation.ts";
import { type IdSource, type JsonObject, randomMessage } from "./json-value.ts";

/** One complete request; sending it again replays it. */
export interface FuzzRequest {
  readonly protocol: Protocol;
  readonly http: "1.1" | "2";
  readonly path: string;
  /** Without authorization. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export type Protocol = "connect" | "grpc" | "grpc-web";

/** The purpose of a request. */
export interface FuzzTarget {
  readonly method: DescMethod;
  /** A valid request written by hand. */
  readonly example: JsonObject;
  readonly idOf: IdSource;
}

/** Returns a request to the operation: sometimes valid, otherwise wrong in one of many ways. */
export function randomRequest(random: Random, target: FuzzTarget): FuzzRequest {
  const protocol = random.pick<Protocol>(["connect", "connect", "grpc", "grpc-web"]);
  const format = random.pick(["json", "proto"] as const);
  const message = format === "json" ? jsonBody(random, target) : binaryBody(random, target);
  const { parent, name } = target.method;
  const encoded = protocol === "connect" ? encode(random, message) : envelope(random, message);
  return {
    protocol,
    http: random.pick(["1.1", "2"]),
    path: `${random.chance(0.5) ? "/api" : ""}/${parent.typeName}/${name}`,
    headers: {
      "content-type": contentType(random, protocol, format),
      ...(protocol === "grpc" && { te: "trailers" }),
      ...(random.chance(0.3) && protocol === "connect" && { "connect-protocol-version": "1" }),
      ...encoded.headers,
      ...(random.chance(0.15) && { "accept-encoding": "gzip", "grpc-accept-encoding": "gzip" }),
      ...(random.chance(0.08) && oddHeader(random, protocol)),
    },
    body: encoded.body,
  };
}

function validMessage(random: Random, { method, example, idOf }: FuzzTarget): JsonObject {
  return random.chance(0.4) ? example : randomMessage(random, method.input, idOf);
}

function jsonBody(random: Random, target: FuzzTarget): Buffer {
  const message = validMessage(random, target);
  const kind = random.fraction();
  if (kind < 0.15) return Buffer.from(JSON.stringify(message));
  if (kind < 0.65) return Buffer.from(JSON.stringify(mutateJson(random, message)));
  if (kind < 0.8) return mutateText(random, JSON.stringify(message));
  if (kind < 0.87) return Buffer.from(JSON.stringify(randomJson(random)));
  if (kind < 0.9) return Buffer.alloc(random.pick([0, 1, 70_000, 400_000]), " ");
  if (kind < 0.95) return Buffer.from(random.bytes(random.integer(0, 200)));
  return mutateBytes(random, Buffer.from(JSON.stringify(message)));
}

function binaryBody(random: Random, target: FuzzTarget): Buffer {
  if (random.chance(0.15)) return Buffer.from(random.bytes(random.integer(0, 200)));
  const { input } = target.method;
  const json = random.chance(0.2)
    ? mutateJson(random, validMessage(random, target))
    : validMessage(random, target);
  let bytes: Uint8Array;
  try {
    bytes = toBinary(input, fromJson(input, json, { ignoreUnknownFields: true }));
  } catch {
    // A fault of JSON that the binary format cannot express.
    bytes = toBinary(input, fromJson(input, target.example));
  }
  return random.chance(0.25) ? Buffer.from(bytes) : mutateBytes(random, bytes);
}

interface Encoded {
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

function encode(random: Random, message: Buffer): Encoded {
  if (random.chance(0.9)) return { body: message, headers: {} };
  const encoding = random.pick(["gzip", "gzip", "identity", "br", "deflate", "", "gzip, gzip"]);
  return { body: compressed(random, message), headers: { "content-encoding": encoding } };
}

function envelope(random: Random, message: Buffer): Encoded {
  if (random.chance(0.65)) return { body: frame(message), headers: {} };
  if (random.chance(0.6)) return { body: brokenFrame(random, message), headers: {} };
  const encoding = random.pick(["gzip", "gzip", "identity", "br", "snappy", ""]);
  return {
    body: frame(compressed(random, message), random.pick([0, 1])),
    headers: { "grpc-encoding": encoding },
  };
}

function compressed(random: Random, message: Buffer): Buffer {
  const whole = gzipSync(message);
  return random.pick([
    () => whole,
    () => whole,
    () => message,
    () => mutateBytes(random, whole),
    // A small body that expands to eight megabytes of blanks.
    () => gzipSync(Buffer.alloc(random.chance(0.1) ? 2 ** 23 : 2 ** 17, " ")),
  ])();
}

function contentType(random: Random, protocol: Protocol, format: "json" | "proto"): string {
  const type = {
    connect: `application/${format}`,
    grpc: `application/grpc+${format}`,
    "grpc-web": `application/grpc-web+${format}`,
  }[protocol];
  if (random.chance(0.95)) return type;
  return random.pick([
    `${type}; charset=utf-8`,
    `${type};charset=utf-16`,
    type.toUpperCase(),
    type.replace(/\+\w+/, ""),
    `${type};`,
    "text/plain",
    "",
  ]);
}

function oddHeader(random: Random, protocol: Protocol): Record<string, string> {
  const timeout = protocol === "connect" ? "connect-timeout-ms" : "grpc-timeout";
  return random.pick<Record<string, string>>([
    {
      [timeout]: random.pick([
        "0",
        "-1",
        "1e9",
        "abc",
        "99999999999",
        "5000",
        "5000m",
        "1S",
        "1u",
        "1n",
        "0n",
        "99999999H",
        "100000000H",
        "",
        "1.5",
      ]),
    },
    { "connect-protocol-version": random.pick(["0", "2", "1, 1", "x"]) },
    { "accept-encoding": random.pick(["gzip", "br", "*", "identity;q=0", ""]) },
    { "connect-accept-encoding": "gzip" },
    { "grpc-accept-encoding": random.pick(["gzip", "nothing", ","]) },
    { accept: random.pick(["text/html", "*/*", "application/json"]) },
    { "x-user-agent": "fuzz", "user-agent": "" },
    { "example-bin": "%%%not-base64%%%" },
    {
      "grpc-message": "é"
        .repeat(10)
        .normalize("NFD")
        .replace(/[^ -~]/g, "%C3"),
    },
  ]);
}
