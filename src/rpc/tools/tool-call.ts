import type { ConnectError } from "@connectrpc/connect";
import { readAllBytes } from "@connectrpc/connect/protocol";
import { errorFromJsonBytes } from "@connectrpc/connect/protocol-connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { CallRecord } from "../access/call-record.ts";
import { completeError, completeUnaryError } from "../error/complete-error.ts";
import { type ReportFault, toConnectError, writeConnectError } from "../error/error.ts";
import { isIdempotencyKey } from "../idempotency-key.ts";
import type { CallJson } from "../in-memory.ts";
import { LargeMessages } from "../response/large-message.ts";
import { waitForOutputSpace } from "../response/output-limit.ts";
import { StreamPositions } from "../stream/stream-positions.ts";
import { errorResult, resultOf, type ToolResult } from "./tool-result.ts";
import { DEFAULT_WAIT_SECONDS, MAX_WAIT_SECONDS } from "./tool-schema.ts";
import { collectStream } from "./tool-stream.ts";
import type { Tool } from "./tools.ts";

/** The request that calls a tool, with its caller. */
export interface ToolCall {
  readonly tool: Tool;
  readonly args: Readonly<Record<string, unknown>>;
  readonly authorization: string | undefined;
  readonly record: CallRecord;
  /** Aborted when nobody waits for the result. */
  readonly signal: AbortSignal;
}

export interface ToolCallOptions {
  readonly callJson: CallJson;
  /** Aborted when the server begins to shut down. */
  readonly draining: AbortSignal;
  readonly report: ReportFault;
}

/** Responses of the server are not limited here; the page sizes of the contract limit them. */
const RESPONSE_LIMIT = 0xffffffff;

/** Calls the operation of a tool. A failure is also a result, which contains the reason. */
export type CallTool = (call: ToolCall) => Promise<ToolResult>;

/** Creates the function that calls the operations of tools. */
export function createToolCalls(options: ToolCallOptions): CallTool {
  return async (call) => {
    try {
      return await (call.tool.isStream ? collect(options, call) : callUnary(options, call));
    } catch (thrown) {
      const error = toConnectError(thrown, call.record, options.report);
      call.record.code = error.code;
      return errorResult(error);
    }
  };
}

async function callUnary(
  { callJson, draining, report }: ToolCallOptions,
  { tool, args, authorization, record, signal }: ToolCall,
): Promise<ToolResult> {
  const { idempotencyKey, ...request } = args;
  if (idempotencyKey !== undefined && (tool.isReadOnly || !isKey(idempotencyKey))) {
    const expected = "1 to 255 visible characters of ASCII, for tools that change something";
    throw unusable("idempotencyKey", expected);
  }
  // Reads wait later, within the operation.
  const room = tool.isReadOnly ? undefined : record.output?.enter(undefined);
  if (record.output && room) await waitForOutputSpace(record.output, room, signal, draining);
  const response = await callJson(tool.route, {
    ...{ authorization, record, signal, idempotencyKey },
    json: bytesOf(request),
  });
  const body = response.body ? await readAllBytes(response.body, RESPONSE_LIMIT) : new Uint8Array();
  const header = new Headers(response.header);
  const complete = await completeUnaryError(response.status, header, body, record, report);
  if (complete.status !== 200) {
    const unreadable = writeConnectError(ErrorReason.INTERNAL, "internal error", {
      request_id: record.requestId,
    });
    throw errorFromJsonBytes(complete.body, undefined, unreadable);
  }
  return resultOf(JSON.parse(Buffer.from(complete.body).toString("utf8")), {
    isReadOnly: tool.isReadOnly,
    isReplayed: header.get("idempotency-replayed") === "true",
  });
}

async function collect(
  { callJson, report }: ToolCallOptions,
  { tool, args, authorization, record, signal }: ToolCall,
): Promise<ToolResult> {
  const { after, waitSeconds = DEFAULT_WAIT_SECONDS, ...request } = args;
  if (after !== undefined && typeof after !== "string")
    throw unusable("after", "`next` of an earlier answer");
  if (!Number.isInteger(waitSeconds) || !isWithin(Number(waitSeconds), 1, MAX_WAIT_SECONDS)) {
    throw unusable("waitSeconds", `a whole number from 1 to ${MAX_WAIT_SECONDS}`);
  }
  const enough = new AbortController();
  const stream = {
    positions: new StreamPositions(after === "" ? undefined : after, "after"),
    large: new LargeMessages(),
  };
  record.operation = tool.route.operation;
  // The rest of the stream is cancelled once the answer is complete; the call itself succeeds.
  const own: CallRecord = { ...record };
  // The call responds with the first message, even if its time is over.
  async function* body(): AsyncGenerator<Uint8Array, void> {
    const response = await callJson(tool.route, {
      ...{ authorization, record: own, stream },
      json: bytesOf(request),
      signal: AbortSignal.any([signal, enough.signal]),
    });
    yield* completeError(response, own, report).body ?? [];
  }
  try {
    const collected = await collectStream(body(), {
      ...stream,
      operation: tool.route.operation,
      after,
      waitMs: Number(waitSeconds) * 1000,
      signal,
    });
    const { error, ...answer } = collected;
    if (error && collected.messages.length === 0) throw error;
    // What came before the stream broke off is worth more than why it did: the next call tells. A message that has no
    // room is cut like the answer of a change: as an error it would hide the position after it, and be sent again with every call.
    return resultOf(answer, { isReadOnly: false });
  } finally {
    enough.abort();
  }
}

function bytesOf(request: object): Uint8Array {
  return Buffer.from(JSON.stringify(request));
}

function isKey(value: unknown): value is string {
  return typeof value === "string" && isIdempotencyKey(value);
}

function isWithin(value: number, least: number, most: number): boolean {
  return value >= least && value <= most;
}

function unusable(field: string, expected: string): ConnectError {
  return writeConnectError(ErrorReason.VALUE_UNUSABLE, `${field} must be ${expected}`, { field });
}
