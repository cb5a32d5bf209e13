import { AsyncLocalStorage } from "node:async_hooks";
import type { ContextValues, Interceptor, Transport } from "@connectrpc/connect";
import {
  createUniversalHandlerClient,
  type UniversalHandler,
  type UniversalServerRequest,
  type UniversalServerResponse,
} from "@connectrpc/connect/protocol";
import {
  contentTypeStreamJson,
  contentTypeUnaryJson,
  createTransport,
} from "@connectrpc/connect/protocol-connect";
import { announcesStartKey } from "../services/call/plain-stream.ts";
import type { Admission } from "./access/admission.ts";
import type { CallRecord } from "./access/call-record.ts";
import { IDEMPOTENCY_KEY } from "./idempotency-key.ts";
import { enveloped } from "./request/envelope.ts";
import { type ParseElsewhere, parsedRequestKey, turnOf } from "./request/parsed-request.ts";
import { LargeMessages, largeMessagesKey } from "./response/large-message.ts";
import type { Route } from "./routes.ts";
import { type StreamPositions, streamPositionsKey } from "./stream/stream-positions.ts";

export interface InMemoryOptions {
  readonly routes: ReadonlyMap<string, Route>;
  readonly admission: Admission;
  /** Creates the request ids in the log of errors. */
  readonly newId: () => string;
}

/**
 * Creates a transport with which this process calls the operations without a
 * socket. The calls pass the same admission, interceptors and limits as all others,
 * but do not appear in the access log.
 */
export function createInMemoryTransport(options: InMemoryOptions): Transport {
  const handlers = [...options.routes.values()].map((route) => withAdmission(route, options));
  return createTransport({
    httpClient: createUniversalHandlerClient(handlers),
    baseUrl: "https://in-memory",
    useBinaryFormat: true,
    interceptors: [takeLargeMessages],
    acceptCompression: [],
    sendCompression: null,
    compressMinBytes: Number.MAX_SAFE_INTEGER,
    readMaxBytes: Number.MAX_SAFE_INTEGER,
    writeMaxBytes: Number.MAX_SAFE_INTEGER,
  });
}

/** The large messages of the current call, which are passed on without serialization. */
const largeMessages = new AsyncLocalStorage<LargeMessages>();

const takeLargeMessages: Interceptor = (next) => async (req) => {
  if (!req.stream) return next(req);
  const large = new LargeMessages();
  const res = await largeMessages.run(large, () => next(req));
  return res.stream ? { ...res, message: withLarge(res.message, large) } : res;
};

async function* withLarge<T>(messages: AsyncIterable<T>, large: LargeMessages): AsyncIterable<T> {
  for await (const message of messages) yield (large.take()?.message as T | undefined) ?? message;
}

function withAdmission(route: Route, { admission, newId }: InMemoryOptions): UniversalHandler {
  const { handle, operation } = route;
  const handleAdmitted = async (req: UniversalServerRequest) => {
    const record: CallRecord = { requestId: newId(), operation };
    const rejected = await admission.admit(route, req.header.get("authorization") ?? undefined, record);
    const contextValues = admission
      .contextValues(route, record, rejected)
      .set(largeMessagesKey, largeMessages.getStore());
    return handle({ ...req, contextValues });
  };
  return Object.assign(handleAdmitted, { ...handle });
}

/** A JSON call of an operation on behalf of a request to another path. */
export interface JsonCall {
  readonly authorization: string | undefined;
  /** The record of that request, in which the operation's name is set. */
  readonly record: CallRecord;
  /** The operation's request. */
  readonly json: Uint8Array;
  readonly idempotencyKey?: string | undefined;
  readonly signal: AbortSignal;
  /** State of a stream; undefined for unary operations. */
  readonly stream?: { readonly positions: StreamPositions; readonly large: LargeMessages };
}

/**
 * Calls an operation like a request of its own: with the same admission, request bounds and interceptors. Rate limits
 * count only the request on whose behalf it is called.
 *
 * @returns the response as the Connect protocol writes it in JSON, errors included
 * @throws ConnectError for a request that is too complex
 */
export type CallJson = (route: Route, call: JsonCall) => Promise<UniversalServerResponse>;

/** Creates the function that calls operations in JSON without a socket. @param parseElsewhere parses large requests */
export function createJsonCalls(admission: Admission, parseElsewhere: ParseElsewhere): CallJson {
  return async (route, call) => {
    const { record, signal, stream, idempotencyKey } = call;
    record.operation = route.operation;
    const rejected = await admission.admit(route, call.authorization, record);
    const contextValues = admission.contextValues(route, record, rejected);
    if (stream) {
      contextValues
        .set(largeMessagesKey, stream.large)
        .set(streamPositionsKey, stream.positions)
        .set(announcesStartKey, true);
    }
    const bytes = rejected ? call.json : await readJson(route, call, contextValues, parseElsewhere);
    const header = new Headers({ "content-type": stream ? contentTypeStreamJson : contentTypeUnaryJson });
    if (idempotencyKey !== undefined) header.set(IDEMPOTENCY_KEY, idempotencyKey);
    return route.handle({
      httpVersion: "1.1",
      method: "POST",
      url: `https://in-memory${route.handle.requestPath}`,
      header,
      body: only(stream ? enveloped(bytes) : bytes),
      signal,
      contextValues,
    });
  };
}

/** Checks the bounds of a request. A large one is parsed elsewhere, and the call continues with an empty body. */
async function readJson(
  { requests }: Route,
  { json, record, signal }: JsonCall,
  values: ContextValues,
  parseElsewhere: ParseElsewhere,
): Promise<Uint8Array> {
  if (!requests?.isLarge(json)) {
    requests?.count(false, json);
    return json;
  }
  values.set(parsedRequestKey, await parseElsewhere(requests, false, json, turnOf(record, signal)));
  return new Uint8Array();
}

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield bytes;
}
