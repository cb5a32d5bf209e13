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
   * The access token, or what returns it for each attempt of a call. Absent: calls have none, and a page of the server
   * itself calls under the session of its person.
   */
  readonly token?: string | (() => string | Promise<string>) | undefined;
  /** For how many milliseconds a call or a stream is tried again; default 30,000. 0 tries once, Infinity never gives up. */
  readonly retryForMs?: number;
  /** After how many milliseconds a call without a time of its own ends, its repetitions included; default 60,000. */
  readonly timeoutMs?: number;
  /** Run for each attempt, inside of the repetitions. */
  readonly interceptors?: readonly Interceptor[];
  /** Takes the place of the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
}

/** What `GET /version` says of a server. */
export interface ServerVersion {
  readonly name: string;
  /** The release, such as `0.1.0`. */
  readonly version: string;
}

/** Calls one server as the owner of one token. */
export interface ChartroomClient {
  /** Carries the calls, for everything else that takes a transport of Connect. */
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
   * interrupted. Events without `afterSequence` begin with the present, again where the stream was cut before its first
   * message.
   */
  watch<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    options?: WatchOptions,
  ): AsyncGenerator<MessageShape<O>, void>;
  /** Asks the server for its version. @throws ConnectError when there is no Chartroom */
  serverVersion(signal?: AbortSignal): Promise<ServerVersion>;
}

/**
 * Creates a client of a server. It opens no connection before the first call, and nothing has to be closed.
 *
 * @throws TypeError when no header can carry the token
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
    // Not the transport's own default, which would end streams too.
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

/** The error of a header would contain the token. */
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
