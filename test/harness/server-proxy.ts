import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { create, type DescMethodUnary, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { AgentWorkService } from "#gen/runner/v1/agent_work_service_pb.js";
import { type WorkReport, WorkReportSchema, WorkService } from "#gen/runner/v1/work_service_pb.js";
import { type ReportHold, splitReports } from "./report-holds.ts";

/** The operations of runner.v1 and their messages. */
type Method = typeof METHODS;

/** Those that answer once. */
const METHODS = { ...WorkService.method, reportAgent: AgentWorkService.method.reportAgent };

/** A call that the proxy holds back. */
export interface HeldCall {
  /** Resolves when a call is held. */
  readonly reached: Promise<void>;
  /** Lets the call continue, and later ones pass. */
  release(): void;
}

/** A proxy between a runner's program and its server: it can hold calls, and its server can be replaced. */
export interface ServerProxy {
  /** The URL to use in place of a server's. */
  readonly url: string;
  /** Forwards later calls to another server. */
  forwardTo(server: { readonly url: string }): void;
  /** Holds the next matching call before the server receives it, and its retries. */
  holdRequest<Name extends keyof Method>(
    operation: Name,
    fits?: (req: MessageShape<Method[Name]["input"]>) => boolean,
  ): HeldCall;
  /**
   * Holds the response to the next matching call and to its retries; the server has completed the
   * call by then.
   */
  holdResponse<Name extends keyof Method>(
    operation: Name,
    fits?: (
      req: MessageShape<Method[Name]["input"]>,
      answer: MessageShape<Method[Name]["output"]>,
    ) => boolean,
  ): HeldCall;
  /**
   * Holds the progress or the end of one work, in whichever call it comes, before the server receives
   * it or after. The reports of other works in the same call pass.
   */
  holdReport(
    hold: Pick<ReportHold, "what" | "at"> & { readonly fits: (report: WorkReport) => boolean },
  ): HeldCall;
  /** Closes all connections of clients, as when a server goes down. */
  closeConnections(): void;
  stop(): Promise<void>;
}

interface Hold {
  readonly operation: string;
  readonly at: "request" | "answer";
  readonly fits: (req: Buffer, answer: Buffer) => boolean;
  /** Of the first held call; its retries are identical. */
  held: Buffer | undefined;
  readonly reached: PromiseWithResolvers<void>;
  readonly released: PromiseWithResolvers<void>;
  isReleased: boolean;
}

/** Starts a proxy on a free port of 127.0.0.1, for clients that use HTTP/1.1 and the binary format. */
export async function startServerProxy(server: { readonly url: string }): Promise<ServerProxy> {
  let target = server.url;
  const agent = new Agent({ keepAlive: true });
  const holds: Hold[] = [];
  const reportHolds: ReportHold[] = [];
  const proxy = createServer((req, res) => {
    pass(req, res).catch(() => res.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));

  async function pass(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const operation = req.url?.split("/").at(-1) ?? "";
    const body = await buffer(req);
    await holdOne(operation, "request", body);
    if (req.socket.destroyed) return;
    const split = operation === "ReportWorks" ? splitReports(body, reportHolds) : undefined;
    if (split) {
      const answer = await forwarded(req, res, split.request);
      const { "content-length": _, ...headers } = answer.headers;
      const answered = await buffer(answer);
      const isTaken = answer.statusCode === 200;
      if (isTaken) await holdOne(operation, "answer", body, answered);
      res.writeHead(answer.statusCode ?? 502, headers).end(isTaken ? split.respond(answered) : answered);
      return;
    }
    const answer = await forwarded(req, res, body);
    const status = answer.statusCode ?? 502;
    if (holds.some((each) => each.operation === operation && each.at === "answer")) {
      const answerBody = await buffer(answer);
      if (status === 200) await holdOne(operation, "answer", body, answerBody);
      res.writeHead(status, answer.headers).end(answerBody);
    } else {
      res.writeHead(status, answer.headers).flushHeaders();
      await pipeline(answer, res);
    }
  }

  function forwarded(req: IncomingMessage, res: ServerResponse, body: Buffer): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const { "accept-encoding": _, "transfer-encoding": _chunked, host: _host, ...rest } = req.headers;
      const headers = { ...rest, "content-length": body.length };
      const call = request(`${target}${req.url}`, { method: req.method ?? "POST", headers, agent });
      // When the client disconnects, its call is cancelled, so that the server leases it no work.
      res.on("close", () => call.destroy());
      call.on("response", resolve).on("error", reject).end(body);
    });
  }

  async function holdOne(operation: string, at: Hold["at"], req: Buffer, answer = Buffer.alloc(0)) {
    const hold = holds.find(
      (each) =>
        each.operation === operation &&
        each.at === at &&
        !each.isReleased &&
        (each.held ? each.held.equals(req) : each.fits(req, answer)),
    );
    if (!hold) return;
    hold.held = req;
    hold.reached.resolve();
    await hold.released.promise;
  }

  function addHold(operation: keyof Method, at: Hold["at"], fits: Hold["fits"]): HeldCall {
    const hold: Hold = {
      operation: METHODS[operation].name,
      at,
      fits,
      held: undefined,
      reached: Promise.withResolvers(),
      released: Promise.withResolvers(),
      isReleased: false,
    };
    holds.push(hold);
    return {
      reached: hold.reached.promise,
      release() {
        hold.isReleased = true;
        hold.released.resolve();
      },
    };
  }

  const read = <M extends DescMethodUnary>(method: M) => ({
    req: (bytes: Buffer) => fromBinary(method.input, bytes) as MessageShape<M["input"]>,
    answer: (bytes: Buffer) => fromBinary(method.output, bytes) as MessageShape<M["output"]>,
  });

  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    forwardTo(server) {
      target = server.url;
    },
    holdRequest(operation, fits = () => true) {
      const { req } = read(METHODS[operation]);
      return addHold(operation, "request", (bytes) => fits(req(bytes)));
    },
    holdResponse(operation, fits = () => true) {
      const { req, answer } = read(METHODS[operation]);
      return addHold(operation, "answer", (bytes, answered) => fits(req(bytes), answer(answered)));
    },
    holdReport({ what, at, fits }) {
      const method = WorkService.method[what === "progress" ? "reportProgress" : "finishWork"];
      // The same in a call for this work alone.
      const alone = addHold(what === "progress" ? "reportProgress" : "finishWork", at, (bytes) =>
        fits(create(WorkReportSchema, { [what]: fromBinary(method.input, bytes) })),
      );
      const reached = Promise.withResolvers<void>();
      const inBatch: ReportHold = {
        what,
        at,
        fits,
        reached: reached.resolve,
        isReleased: false,
        isForwarded: false,
      };
      reportHolds.push(inBatch);
      return {
        reached: Promise.race([alone.reached, reached.promise]),
        release() {
          inBatch.isReleased = true;
          alone.release();
        },
      };
    },
    closeConnections: () => proxy.closeAllConnections(),
    async stop() {
      proxy.closeAllConnections();
      agent.destroy();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}
