import type { ServerResponse } from "node:http";
import type { BodyOwner } from "../body/body-guard.ts";
import {
  type BodyObserver,
  failWithConnection,
  type Http1Request,
  observeHttp1Body,
  type RequestBody,
} from "../body/request-body.ts";
import { BODY_TOO_SLOW, type RejectedRequest, reject } from "../dispatch/rejected-request.ts";
import { destroyWithin } from "./close-connection.ts";
import type { Connection, OpenRequest } from "./connections.ts";
import { suppressWrites } from "./node-internals.ts";
import type { ServerContext } from "./server-context.ts";

/** One request of HTTP/1 and its response, from the request's headers until the response was sent. */
export class Http1Exchange implements OpenRequest, BodyOwner, BodyObserver {
  readonly #res: ServerResponse;
  readonly #context: ServerContext;
  readonly #req: Http1Request;
  /** The request's socket, kept here because Node detaches it from a request that a reader has destroyed. */
  readonly #socket: Http1Request["socket"];
  readonly #peer: string;
  readonly #guard: BodyObserver;
  readonly #body: RequestBody;
  /** Node's interpretation of the request's headers. */
  readonly #mayPersist: boolean;
  #isWaiting: boolean;

  /** @param isWaiting whether the client waits for a `100 Continue` before it sends its body */
  constructor(
    context: ServerContext,
    connection: Connection,
    req: Http1Request,
    res: ServerResponse,
    isWaiting: boolean,
  ) {
    this.#context = context;
    this.#req = req;
    this.#res = res;
    this.#socket = req.socket;
    this.#peer = connection.peer;
    this.#mayPersist = res.shouldKeepAlive;
    this.#isWaiting = isWaiting;
    req.on("error", ignore);
    res.on("error", ignore);
    this.#guard = context.guard.watch(req, this);
    this.#body = observeHttp1Body(req, this);
    // The client sends no body before it gets `100 Continue`.
    if (isWaiting) this.#guard.full();
    if (this.#body.isOver) {
      this.#guard.over();
    } else {
      // Must run before Node's own listener, which would destroy the socket and the response with it.
      res.prependListener("finish", () => {
        if (!this.#body.isOver) this.#closeUnread();
      });
    }
    this.updatePersistence();
    context.connections.begin(connection, this);
    res.on("close", () => context.connections.end(connection, this));
  }

  get isResponding(): boolean {
    return this.#res.socket !== null && this.#res.headersSent;
  }

  /** Sends a refusal when there is one; otherwise calls the handler. */
  handle(refusal: RejectedRequest | undefined): void {
    if (refusal) {
      this.#res.shouldKeepAlive = false;
      reject(this.#res, refusal);
    } else {
      this.#context.handle(this.#req, this.#res, this.#peer);
    }
  }

  /** Decides whether the connection persists after this response; to be called when that may have changed. */
  updatePersistence(): void {
    this.#res.shouldKeepAlive = this.#mayPersist && this.#body.isOver && !this.#context.isDraining();
  }

  arrived(bytes: number): void {
    this.#guard.arrived(bytes);
  }

  full(): void {
    this.#guard.full();
  }

  wanted(): void {
    if (this.#isWaiting && !this.#res.headersSent) this.#res.writeContinue();
    this.#isWaiting = false;
    this.#guard.wanted();
  }

  over(): void {
    this.#guard.over();
    this.updatePersistence();
  }

  ended(): void {
    this.#guard.over();
  }

  cut(): void {
    const socket = this.#socket;
    if (this.#res.headersSent) {
      socket.destroy();
      return;
    }
    this.#res.shouldKeepAlive = false;
    reject(this.#res, BODY_TOO_SLOW);
    suppressWrites(this.#res);
    destroyWithin(socket, this.#context.limits.flushMs);
  }

  /** Ends a connection whose client may still be sending a body that nobody reads. */
  #closeUnread(): void {
    const socket = this.#socket;
    const { limits } = this.#context;
    failWithConnection(this.#req, socket);
    socket.destroySoon = ignore;
    // The socket is not destroyed yet: a reset would fail the client's next write before it reads the response.
    this.#body.discard(limits.discardBytes, () => void socket.pause());
    socket.end();
    // Without this Node would drop the rest uncounted. The socket may also be paused.
    this.#req.resume();
    socket.resume();
    destroyWithin(socket, limits.discardMs);
  }
}

function ignore(): void {}
