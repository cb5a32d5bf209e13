import { fromJson, toBinary } from "@bufbuild/protobuf";
import { frame } from "../fuzz/byte-mutation.ts";
import { type FuzzTarget, type Protocol, randomRequest } from "../fuzz/request.ts";
import type { Exchange } from "../harness/exchange.ts";
import type { Random } from "../harness/random.ts";

/** Who asks, besides somebody who may: authorization headers, undefined for none. */
export type Strangers = readonly (string | undefined)[];

/** A request to a unary operation over the Connect protocol or gRPC. */
export function randomExchange(
  random: Random,
  target: FuzzTarget,
  authorization: string,
  strangers: Strangers,
): Exchange {
  const exchange = random.chance(0.6) ? connectExchange : grpcExchange;
  return exchange(random, target, authorization, strangers);
}

/** What random requests have in them, and what decides which of the two paths takes them. */
function grpcExchange(
  random: Random,
  target: FuzzTarget,
  authorization: string,
  strangers: Strangers,
): Exchange {
  const fuzz = random.chance(0.5) ? fuzzRequest(random, target, "grpc") : plainGrpc(target);
  const asker = random.chance(0.12) ? random.pick(strangers) : authorization;
  const isPlain = fuzz.headers["content-type"] === "application/grpc+proto";
  const headers = {
    ...fuzz.headers,
    ...(isPlain && random.chance(0.3) && { "content-type": random.pick(GRPC_SPELLINGS) }),
    ...(asker !== undefined && { authorization: asker }),
    ...(random.chance(0.3) && { "grpc-accept-encoding": random.pick(ENCODINGS) }),
    ...(random.chance(0.06) && { "grpc-timeout": random.pick(GRPC_TIMEOUTS) }),
    ...(random.chance(0.1) && { "idempotency-key": random.pick(KEYS) }),
    ...(random.chance(0.05) && { "grpc-encoding": "identity" }),
  };
  return {
    // Few clients speak it over HTTP/1.1, which is never the path's.
    http: random.chance(0.9) ? "2" : fuzz.http,
    method: random.chance(0.97) ? "POST" : random.pick(["GET", "PUT", "DELETE"]),
    path: random.chance(0.95) ? fuzz.path : random.pick(otherPaths(fuzz.path)),
    headers,
    body: isPlain && random.chance(0.05) ? withLargeField(random, fuzz.body) : fuzz.body,
    hasContentLength: random.chance(0.3),
    isSplit: random.chance(0.2),
  };
}

const GRPC_SPELLINGS = ["application/grpc", "application/grpc", "Application/gRPC", "application/grpc;x=1"];
const GRPC_TIMEOUTS = ["0n", "1u", "5S", "5000m", "24H", "99999999H", "100000000H", "-1S", "1.5S", "abc", ""];

function plainGrpc({ method, example }: FuzzTarget) {
  const { input, parent, name } = method;
  return {
    http: "2" as const,
    path: `/${parent.typeName}/${name}`,
    headers: { "content-type": "application/grpc+proto", te: "trailers" },
    body: frame(toBinary(input, fromJson(input, example))),
  };
}

/** More than is parsed on the main thread, as an unknown field behind what a whole message says. */
function withLargeField(random: Random, body: Buffer): Buffer {
  if (body.length < 5 || body.readUInt32BE(1) !== body.length - 5) return body;
  const length = random.pick([131_072, 200_000]);
  const tag = Buffer.of(0xfa, 0xff, 0xff, 0xff, 0x0f);
  const size = Buffer.of((length & 0x7f) | 0x80, ((length >> 7) & 0x7f) | 0x80, length >> 14);
  return frame(Buffer.concat([body.subarray(5), tag, size, Buffer.alloc(length)]), body[0]);
}

/**
 * A request to a unary operation over the Connect protocol: what random requests
 * have in them, and what decides which of the two paths takes it.
 */
function connectExchange(
  random: Random,
  target: FuzzTarget,
  authorization: string,
  strangers: Strangers,
): Exchange {
  const fuzz = random.chance(0.75) ? fuzzRequest(random, target, "connect") : plainRequest(random, target);
  const asker = random.chance(0.12) ? random.pick(strangers) : authorization;
  const isJson = fuzz.headers["content-type"] === "application/json";
  const headers = {
    ...fuzz.headers,
    ...(isJson && random.chance(0.1) && { "content-type": random.pick(SPELLINGS) }),
    ...(asker !== undefined && { authorization: asker }),
    ...(random.chance(0.25) && { "accept-encoding": random.pick(ENCODINGS) }),
    ...(random.chance(0.06) && { "connect-timeout-ms": random.pick(TIMEOUTS) }),
    ...(random.chance(0.1) && { "idempotency-key": random.pick(KEYS) }),
    ...(random.chance(0.05) && { "connect-protocol-version": random.pick(["1", "1", "2", ""]) }),
    ...(random.chance(0.05) && { "content-encoding": "identity" }),
  };
  return {
    http: fuzz.http,
    method: random.chance(0.97) ? "POST" : random.pick(["GET", "PUT", "DELETE"]),
    path: random.chance(0.95) ? fuzz.path : random.pick(otherPaths(fuzz.path)),
    headers,
    body: isJson && random.chance(0.05) ? large(random, fuzz.body) : fuzz.body,
    hasContentLength: random.chance(0.9),
    isSplit: random.chance(0.1),
  };
}

/** Two that the unary path takes, and others that mean the same. */
const SPELLINGS = [
  "application/json; charset=utf-8",
  "application/json",
  "application/json;charset=utf-8",
  "application/json;  charset=utf-8",
  "Application/JSON",
];
const ENCODINGS = ["gzip", "gzip, deflate, br", "br,gzip", "gzip;q=0", "deflate", "*", "", "GZIP", " gzip "];
const TIMEOUTS = ["0", "5000", "86400000", "9999999999", "99999999999", "-1", "1.5", "abc", "", "0x10"];
const KEYS = [
  "one",
  "two",
  "three",
  "a key",
  "",
  "k".repeat(255),
  "k".repeat(256),
  "ключ".normalize("NFC"),
].map((key) => Buffer.from(key).toString("latin1"));

function otherPaths(path: string): string[] {
  return [`${path}?x=1`, `${path}/`, `${path}s`, path.toLowerCase(), `/api${path}`, "/", "/api/"];
}

/** More than is parsed on the main thread, as blanks before what the body says. */
function large(random: Random, body: Buffer): Buffer {
  return Buffer.concat([Buffer.alloc(random.pick([131_072, 200_000]), " "), body]);
}

function plainRequest(random: Random, { method, example }: FuzzTarget) {
  const isBinary = random.chance(0.5);
  const { input, parent, name } = method;
  const bytes = isBinary ? toBinary(input, fromJson(input, example)) : JSON.stringify(example);
  return {
    http: random.pick(["1.1", "2"] as const),
    path: `/api/${parent.typeName}/${name}`,
    headers: { "content-type": isBinary ? "application/proto" : "application/json" },
    body: Buffer.from(bytes as string),
  };
}

function fuzzRequest(random: Random, target: FuzzTarget, protocol: Protocol) {
  for (;;) {
    const request = randomRequest(random, target);
    if (request.protocol === protocol) return request;
  }
}
