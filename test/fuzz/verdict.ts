import { gunzipSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import { codeFromString } from "@connectrpc/connect/protocol-connect";
import type { FuzzRequest } from "./request.ts";
import type { FuzzAnswer } from "./send.ts";

/** 0 means success. */
export type Outcome = Code | 0;

/** Codes that blame the server; no request may cause them. */
const FAULTS: readonly Outcome[] = [Code.Unknown, Code.Internal, Code.DataLoss, Code.Unavailable];

/**
 * Returns the code of a response in the form of its protocol.
 *
 * @throws Error when the response blames the server or no client can read it
 */
export function judge(request: FuzzRequest, answer: FuzzAnswer): Outcome {
  const { status } = answer;
  if (status >= 500 && status !== 501 && status !== 504) throw new Error(`status ${status}`);
  const outcome = outcomeOf(request, answer);
  if (FAULTS.includes(outcome)) throw new Error(`code ${Code[outcome]}`);
  return outcome;
}

function outcomeOf(request: FuzzRequest, { status, headers, body: sent }: FuzzAnswer): Outcome {
  const type = headers["content-type"] ?? "";
  const body = headers["content-encoding"] === "gzip" ? gunzipSync(sent) : sent;
  if (status !== 200) return jsonError(body);
  if (type.startsWith("application/grpc-web")) return grpcStatus(headers["grpc-status"] ?? lastFrame(body));
  if (type.startsWith("application/grpc")) return grpcStatus(headers["grpc-status"]);
  if (request.protocol !== "connect") throw new Error(`answered with ${type}`);
  if (type.startsWith("application/json")) JSON.parse(body.toString("utf8"));
  return 0;
}

/** Errors raised before the protocol layer are JSON in every protocol, like those of Connect. */
function jsonError(body: Buffer): Outcome {
  const { code } = JSON.parse(body.toString("utf8"));
  const known = codeFromString(code);
  if (known === undefined) throw new Error(`the code ${code} does not exist`);
  return known;
}

function grpcStatus(text: string | undefined): Outcome {
  const status = Number(text);
  if (text === undefined || !(status === 0 || status in Code)) throw new Error(`grpc-status ${text}`);
  return status;
}

/** Returns the status in the trailer frame that ends a gRPC-Web response. */
function lastFrame(body: Buffer): string | undefined {
  for (let at = 0; at + 5 <= body.length; at += 5 + body.readUInt32BE(at + 1)) {
    const flags = body[at] ?? 0;
    const data = body.subarray(at + 5, at + 5 + body.readUInt32BE(at + 1));
    const text = (flags & 1 ? gunzipSync(data) : data).toString("latin1");
    if (flags & 0x80) return /^grpc-status: *(\d+)/im.exec(text)?.[1];
  }
  return undefined;
}
