import { constants } from "node:http2";
import type { HttpRequest, HttpResponse } from "./listener.ts";
import type { Cut, Output } from "./output-account.ts";
import type { OutputBudget } from "./output-budget.ts";

/** Connections whose end is told to their budget. */
const watched = new WeakSet<object>();

/** Opens the account of the answer to a request; the caller of this ends it when the response closes. */
export function openOutput(budget: OutputBudget, req: HttpRequest, res: HttpResponse): Output {
  const connection = ("stream" in req && req.stream.session) || req.socket;
  if (!watched.has(connection)) {
    watched.add(connection);
    // Node tells only the first of several pipelined answers that the connection is gone.
    connection.once("close", () => budget.close(connection));
  }
  return budget.open(connection, new ResponseCut(req, res));
}

/** One for each request, so it has fields and no closures. */
class ResponseCut implements Cut {
  readonly #req: HttpRequest;
  readonly #res: HttpResponse;

  constructor(req: HttpRequest, res: HttpResponse) {
    this.#req = req;
    this.#res = res;
  }

  get isMultiplexed(): boolean {
    return "stream" in this.#res;
  }

  answer(): void {
    if (!("stream" in this.#res)) {
      this.#req.socket.destroy();
      return;
    }
    const { stream } = this.#res;
    if (!stream || stream.destroyed) return;
    stream.close(constants.NGHTTP2_CANCEL);
    // It would wait for what its client does not take.
    stream.destroy();
  }

  connection(): void {
    const session = "stream" in this.#req ? this.#req.stream.session : undefined;
    if (session && !session.destroyed) session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
    else this.#req.socket.destroy();
  }
}
