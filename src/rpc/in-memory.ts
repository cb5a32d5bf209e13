import { AsyncLocalStorage } from "node:async_hooks";
import { createContextValues, type Interceptor, type Transport } from "@connectrpc/connect";
import {
  createUniversalHandlerClient,
  type UniversalHandler,
  type UniversalServerRequest,
} from "@connectrpc/connect/protocol";
import { createTransport } from "@connectrpc/connect/protocol-connect";
import { callerKey } from "../services/call/call.ts";
import { type Authentication, authError } from "./access/authentication.ts";
import { authErrorKey, shuttingDown } from "./access/authorization.ts";
import { callRecordKey } from "./access/call-record.ts";
import type { Readiness } from "./health.ts";
import { LargeMessages, largeMessagesKey } from "./large-message.ts";
import type { Route } from "./routes.ts";

export interface InMemoryOptions {
  readonly routes: ReadonlyMap<string, Route>;
  readonly authenticate: Authentication;
  readonly readiness: Readiness;
  /** Creates the ids that name requests in the log of faults. */
  readonly newId: () => string;
}

/**
 * Creates a transport for calls of this process to the operations without a
 * socket: through the same authentication, interceptors and limits as all others.
 * The access log does not contain them.
 */
export function createInMemoryTransport(options: InMemoryOptions): Transport {
  const handlers = [...options.routes.values()].map((route) => withAuthentication(route, options));
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

function withAuthentication(
  { handle, requiresToken }: Route,
  { authenticate, readiness, newId }: InMemoryOptions,
): UniversalHandler {
  const handleAuthenticated = async (req: UniversalServerRequest) => {
    const authentication = requiresToken
      ? await authenticate(req.header.get("authorization") ?? undefined)
      : undefined;
    const caller = authentication?.kind === "known" ? authentication.caller : undefined;
    const operation = `${handle.service.typeName}/${handle.method.name}`;
    const draining = requiresToken && readiness.draining.aborted ? shuttingDown() : undefined;
    const contextValues = createContextValues()
      .set(callRecordKey, { requestId: newId(), operation, ...(caller && { caller }) })
      .set(callerKey, caller)
      .set(largeMessagesKey, largeMessages.getStore())
      .set(authErrorKey, (authentication && authError(authentication)) ?? draining);
    return handle({ ...req, contextValues });
  };
  return Object.assign(handleAuthenticated, { ...handle });
}
