import { AsyncLocalStorage } from "node:async_hooks";
import type { Interceptor, Transport } from "@connectrpc/connect";
import {
  createUniversalHandlerClient,
  type UniversalHandler,
  type UniversalServerRequest,
} from "@connectrpc/connect/protocol";
import { createTransport } from "@connectrpc/connect/protocol-connect";
import type { Admission } from "./access/admission.ts";
import type { CallRecord } from "./access/call-record.ts";
import { LargeMessages, largeMessagesKey } from "./response/large-message.ts";
import type { Route } from "./routes.ts";

export interface InMemoryOptions {
  readonly routes: ReadonlyMap<string, Route>;
  readonly admission: Admission;
  /** Creates the ids that name requests in the log of faults. */
  readonly newId: () => string;
}

/**
 * Creates a transport for calls of this process to the operations without a
 * socket: through the same admission, interceptors and limits as all others.
 * The access log does not contain them.
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

/** The large messages of the call that is being made: they are handed over as they are. */
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
