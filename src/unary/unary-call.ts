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

/**
 * The reason with which the signal of an ended call is aborted; shared by all calls,
 * since each new error would capture a stack trace.
 */
const CALL_ENDED = new ConnectError("the call is over", Code.Canceled);

export interface CallOptions {
  readonly protocolName: "connect" | "grpc";
  /** Undefined for a call without a deadline. */
  readonly timeoutMs: number | undefined;
}

/**
 * One unary call, as interceptors and the operation see it. Rarely used parts,
 * such as the headers and the signal, are created at their first use. An
 * interceptor must pass on this object itself: a copy would lack the parts that are
 * not created yet.
 */
export class UnaryCall implements UnaryRequest, HandlerContext {
  readonly stream = false;
  readonly requestMethod = "POST";
  readonly protocolName: "connect" | "grpc";
  readonly method: DescMethodUnary;
  readonly contextValues: ContextValues;
  /** Set when the body has arrived; before that only authentication sees the call. */
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
  /**
   * The reason of the signal's abort, whether or not a signal was created;
   * undefined while it is not aborted.
   */
  #aborted: { readonly reason: unknown } | undefined;

  constructor(
    req: HttpRequest,
    res: HttpResponse,
    method: DescMethodUnary,
    values: ContextValues,
    { protocolName, timeoutMs }: CallOptions,
  ) {
    this.protocolName = protocolName;
    this.#req = req;
    this.#res = res;
    this.method = method;
    this.contextValues = values;
    if (timeoutMs !== undefined) {
      this.#endsAt = Date.now() + timeoutMs;
      this.#timer = setTimeout(() => this.#expire(), timeoutMs);
      // A timer would take a moment even for 0 ms, in which the operation must not start.
      if (timeoutMs === 0) this.#abort(deadlinePassed());
    }
  }

  get service() {
    return this.method.parent;
  }

  get values(): ContextValues {
    return this.contextValues;
  }

  /** Returns the headers of the request. */
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

  /**
   * Returns a signal that is aborted when the deadline passes, when the client
   * disconnects and when the call ends.
   */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#aborted.reason);
      // Without a reason the signal gets its default one, which is right: the caller aborted.
      else if (isGone(this.#res)) this.#abort(undefined);
      else this.#res.once("close", () => this.#abort(undefined));
    }
    return this.#controller.signal;
  }

  /** Returns the time left until the caller's deadline, in milliseconds. */
  timeoutMs(): number | undefined {
    return this.#endsAt === undefined ? undefined : this.#endsAt - Date.now();
  }

  /** Returns the headers for the response; undefined when nobody has used them. */
  get responseHeaderIfAny(): Headers | undefined {
    return this.#responseHeader;
  }

  get responseTrailerIfAny(): Headers | undefined {
    return this.#responseTrailer;
  }

  /** Sets the function to call at the deadline while the body arrives. */
  onExpiry(tell: ((error: ConnectError) => void) | undefined): void {
    this.#expired = tell;
  }

  /** Ends everything that waits for the call; must be called for every call, whatever its outcome. */
  end(reason: unknown = CALL_ENDED): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#abort(reason);
  }

  #expire(): void {
    const error = deadlinePassed();
    this.#abort(error);
    this.#expired?.(error);
  }

  #abort(reason: unknown): void {
    // The response closes after each call: without this check the controller would create an exception
    // each time.
    if (this.#aborted) return;
    this.#aborted = { reason };
    this.#controller?.abort(reason);
  }
}

/** Returns whether the client has disconnected. */
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
