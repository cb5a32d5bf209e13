import type {
  DescMessage,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import {
  type CallOptions,
  type Client,
  Code,
  ConnectError,
  createClient as createServiceClient,
  type Interceptor,
  type Transport,
} from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { type ElementOf, readList, readPages } from "./pages.ts";
import { createRetries, markUnavailable } from "./retry.ts";
import { type WatchOptions, watchStream } from "./watch.ts";

export interface ClientOptions {
  /** The server's address, such as `https://chartroom.example.org`; without `/api`. */
  readonly server: string;
  /**
   * The access token, or a function that returns it for each attempt of a call. When absent, calls have no token; a
   * page of the server itself then calls with the session of its user.
   */
  readonly token?: string | (() => string | Promise<string>) | undefined;
  /** How many milliseconds a call or a stream is retried; default 30,000. 0 tries once, Infinity never gives up. */
  readonly retryForMs?: number;
  /** Timeout in milliseconds of calls without their own, including retries; default 60,000. */
  readonly timeoutMs?: number;
  /** Run for each attempt, inside the retries. */
  readonly interceptors?: readonly Interceptor[];
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
}

/** The response of `GET /version`. */
export interface ServerVersion {
  readonly name: string;
  /** The release, such as `0.1.0`. */
  readonly version: string;
}

/** Calls one server as the owner of one token. */
export interface ChartroomClient {
  /** The transport of the calls, for everything else that takes a Connect transport. */
  readonly transport: Transport;
  /** Returns the operations of a service. Their streams end when they are interrupted: {@link watch} resumes them. */
  service<S extends DescService>(service: S): Client<S>;
  /** Yields the elements of a list operation, in pages of 100 unless the request says otherwise. */
  list<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options?: CallOptions,
  ): AsyncGenerator<ElementOf<MessageShape<O>>, void>;
  /** Yields the pages of a list operation. */
  pages<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options?: CallOptions,
  ): AsyncGenerator<MessageShape<O>, void>;
  /**
   * Yields the messages of WatchEvents, WatchAgentExecution or StreamActionLogs, and resumes the stream when it is
   * interrupted. Events without `afterSequence` start at the present, and do so again when the stream is interrupted
   * before its first message.
   */
  watch<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    options?: WatchOptions,
  ): AsyncGenerator<MessageShape<O>, void>;
  /** Asks the server for its version. @throws ConnectError when the server is not a Chartroom server */
  serverVersion(signal?: AbortSignal): Promise<ServerVersion>;
}

/**
 * Creates a client of a server. It connects at the first call and need not be closed.
 *
 * @throws TypeError when the token cannot be sent in a header
 */
export function createClient({
  server,
  token,
  retryForMs = 30_000,
  timeoutMs: defaultTimeoutMs = 60_000,
  interceptors = [],
  fetch,
}: ClientOptions): ChartroomClient {
  if (typeof token === "string") checkToken(token);
  const url = server.replace(/\/+$/, "");
  const base = createConnectTransport({
    baseUrl: `${url}/api`,
    interceptors: [createRetries(retryForMs), authorize(token), ...interceptors, markUnavailable],
    ...(fetch && { fetch }),
  });
  const transport: Transport = {
    // Not the transport's own default, which would also end streams.
    unary: (method, signal, timeoutMs = defaultTimeoutMs, ...rest) =>
      base.unary(method, signal, timeoutMs, ...rest),
    stream: base.stream,
  };
  return {
    transport,
    service: (service) => createServiceClient(service, transport),
    list: (method, request, options = {}) => readList(transport, method, request, options),
    pages: (method, request, options = {}) => readPages(transport, method, request, options),
    watch: (method, request, options = {}) =>
      watchStream(transport, method, request, {
        ...options,
        retryForMs: options.retryForMs ?? retryForMs,
      }),
    serverVersion: (signal) => readVersion(url, fetch ?? globalThis.fetch, signal),
  };
}

function authorize(token: ClientOptions["token"]): Interceptor {
  return (next) => async (req) => {
    const text = typeof token === "function" ? await token() : token;
    checkToken(text ?? "");
    if (text) req.header.set("Authorization", `Bearer ${text}`);
    return next(req);
  };
}

/** The error for an invalid header would contain the token. */
function checkToken(token: string): void {
  if (/[^\x21-\x7e]/.test(token))
    throw new TypeError("the token has characters that no token has, such as the end of a line");
}

async function readVersion(
  url: string,
  fetch: typeof globalThis.fetch,
  signal: AbortSignal | undefined,
): Promise<ServerVersion> {
  try {
    const res = await fetch(`${url}/version`, { ...(signal && { signal }) });
    const { name, version } = await res.json();
    if (res.ok && name === "chartroom") return { name, version };
  } catch (error) {
    throw ConnectError.from(error, Code.Unavailable);
  }
  throw new ConnectError(`there is no Chartroom at ${url}`, Code.Unimplemented);
}
