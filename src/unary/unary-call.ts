import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { TLSSocket } from "node:tls";
import type { DescMessage, DescMethodUnary, MessageShape } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextValues,
  type HandlerContext,
  type UnaryRequest,
} from "@connectrpc/connect";
import { deadlinePassed } from "../rpc/request/request-failure.ts";

export type HttpRequest = IncomingMessage | Http2ServerRequest;
export type HttpResponse = ServerResponse | Http2ServerResponse;

/** Why the signal of a call that has ended is aborted; one for all, as each would trace its way here. */
const OVER = new ConnectError("the call is over", Code.Canceled);

/**
 * One unary call, as interceptors and as the operation see it. What few calls
 * look at, the headers and the signal among it, is made at the first look. An
 * interceptor must hand it on as it is: a copy would lose what is not made yet.
 */
export class UnaryCall implements UnaryRequest, HandlerContext {
  readonly stream = false;
  readonly requestMethod = "POST";
  readonly protocolName = "connect";
  readonly method: DescMethodUnary;
  readonly contextValues: ContextValues;
  /** Set when the body is there; before that only the gate sees the call. */
  message!: MessageShape<DescMessage>;

  readonly #req: HttpRequest;
  readonly #res: HttpResponse;
  readonly #endsAt: number | undefined;
  readonly #timer: NodeJS.Timeout | undefined;
  #expired: ((error: ConnectError) => void) | undefined;
  #header: Headers | undefined;
  #responseHeader: Headers | undefined;
  #responseTrailer: Headers | undefined;
  #controller: AbortController | undefined;
  /** Why the signal is aborted, whether or not there is one; undefined while it is not. */
  #aborted: { readonly reason: unknown } | undefined;

  /** @param timeoutMs undefined for a call without a deadline */
  constructor(
    req: HttpRequest,
    res: HttpResponse,
    method: DescMethodUnary,
    values: ContextValues,
    timeoutMs: number | undefined,
  ) {
    this.#req = req;
    this.#res = res;
    this.method = method;
    this.contextValues = values;
    if (timeoutMs !== undefined) {
      this.#endsAt = Date.now() + timeoutMs;
      this.#timer = setTimeout(() => this.#expire(), timeoutMs);
      // A timer takes a moment even then, and nothing may begin in it.
      if (timeoutMs === 0) this.#abort(deadlinePassed());
    }
  }

  get service() {
    return this.method.parent;
  }

  get values(): ContextValues {
    return this.contextValues;
  }

  /** The headers of the request. */
  get header(): Headers {
    this.#header ??= webHeaders(this.#req);
    return this.#header;
  }

  get requestHeader(): Headers {
    return this.header;
  }

  get responseHeader(): Headers {
    this.#responseHeader ??= new Headers();
    return this.#responseHeader;
  }

  get responseTrailer(): Headers {
    this.#responseTrailer ??= new Headers();
    return this.#responseTrailer;
  }

  get url(): string {
    const { headers, socket, url } = this.#req;
    const scheme = (socket as Partial<TLSSocket>).encrypted ? "https" : "http";
    return new URL(url ?? "", `${scheme}://${headers[":authority"] ?? headers.host}`).toString();
  }

  /** Aborted when the deadline passes, when the client goes away and when the call is over. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#aborted.reason);
      // Its default reason says what has happened: the caller aborted.
      else if (isGone(this.#res)) this.#abort(undefined);
      else this.#res.once("close", () => this.#abort(undefined));
    }
    return this.#controller.signal;
  }

  /** What is left of the caller's deadline. */
  timeoutMs(): number | undefined {
    return this.#endsAt === undefined ? undefined : this.#endsAt - Date.now();
  }

  /** Headers that the answer is to have; undefined when nobody has looked at them. */
  get responseHeaderIfAny(): Headers | undefined {
    return this.#responseHeader;
  }

  get responseTrailerIfAny(): Headers | undefined {
    return this.#responseTrailer;
  }

  /** Whom to tell of the deadline while the body comes. */
  onExpiry(tell: ((error: ConnectError) => void) | undefined): void {
    this.#expired = tell;
  }

  /** Ends what waits for the call; for every call, however it went. */
  end(reason: unknown = OVER): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#abort(reason);
  }

  #expire(): void {
    const error = deadlinePassed();
    this.#abort(error);
    this.#expired?.(error);
  }

  #abort(reason: unknown): void {
    // The response closes after each call: without a look at it, the controller would make an exception each time.
    if (this.#aborted) return;
    this.#aborted = { reason };
    this.#controller?.abort(reason);
  }
}

/** Whether nobody is left to whom the answer could go. */
export function isGone(res: HttpResponse): boolean {
  return "stream" in res ? res.stream === undefined || res.stream.destroyed : res.destroyed;
}

function webHeaders({ headers }: HttpRequest): Headers {
  const header = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith(":") || value === undefined) continue;
    for (const each of Array.isArray(value) ? value : [value]) header.append(name, each);
  }
  return header;
}
