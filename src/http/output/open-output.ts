import { constants } from "node:http2";
import type { Socket } from "node:net";
import type { HttpRequest, HttpResponse } from "../connection/listener.ts";
import { handleOf, type SocketHandle } from "../connection/node-internals.ts";
import type { ResponseOutput, ResponseTransport, Turn } from "./output-account.ts";
import type { OutputBudget } from "./output-budget.ts";

/** Opens the account of the response to a request; the caller ends it when the response closes. */
export function openOutput(budget: OutputBudget, req: HttpRequest, res: HttpResponse): ResponseOutput {
  const connection = ("stream" in req && req.stream.session) || req.socket;
  return budget.open(connection, new HttpTransport(req, res));
}

/** There is one for each request, so it uses fields and not closures. */
class HttpTransport implements ResponseTransport {
  readonly #req: HttpRequest;
  readonly #res: HttpResponse;

  constructor(req: HttpRequest, res: HttpResponse) {
    this.#req = req;
    this.#res = res;
  }

  writtenBytes(): number {
    const handle = this.#handle();
    return handle ? handle.bytesWritten - handle.writeQueueSize : 0;
  }

  turn(): Turn {
    const session = this.#session;
    const hasUnsent = (this.#handle()?.writeQueueSize ?? 0) > 0;
    // HTTP/1: it cannot be sent before an earlier response ends, even when that has nothing to send, such as a stream
    // without events.
    if (!session) return this.#res.socket === null && !hasUnsent ? "later" : "shared";
    const isBusy = hasUnsent || session.state.remoteWindowSize === 0;
    return isBusy ? "shared" : "own";
  }

  cutResponse(): void {
    if (!("stream" in this.#res)) {
      this.#req.socket.destroy();
      return;
    }
    const { stream } = this.#res;
    if (!stream || stream.destroyed) return;
    stream.close(constants.NGHTTP2_CANCEL);
    // Without this the stream would wait to send bytes that its client does not receive.
    stream.destroy();
  }

  cutConnection(): void {
    const session = this.#session;
    if (session && !session.destroyed) session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
    else this.#req.socket.destroy();
  }

  get #session() {
    return "stream" in this.#req ? this.#req.stream.session : undefined;
  }

  #handle(): SocketHandle | null {
    const session = this.#session;
    if (session?.destroyed) return null;
    return handleOf((session ?? this.#req).socket as Socket);
  }
}
