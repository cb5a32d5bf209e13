import { once } from "node:events";
import type { Socket } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import { exemptFromBodyGuard } from "../../src/http/body/body-guard.ts";
import { createListener, type HttpRequest, type HttpResponse } from "../../src/http/connection/listener.ts";

/**
 * A program around the listener for tests that need a separate process. Options come as JSON in the
 * first argument. It prints lines of JSON: the address, then a line for each event. SIGTERM drains
 * for `graceMs`. With `clock`, time advances for the body guard, the listener's own checks and the
 * handlers only when a line on standard input says by how much, so that a suspended process does
 * not change the outcome. Node's own timers still run.
 */
const { graceMs = 30_000, clock = false, ...options } = JSON.parse(process.argv[2] ?? "{}");

let passedMs = 0;
let waiting: { untilMs: number; resolve: () => void }[] = [];
const wait = (ms: number): Promise<void> =>
  clock ? new Promise((resolve) => waiting.push({ untilMs: passedMs + ms, resolve })) : delay(ms);

/** Timers fire in the order of their times: when this one fires, the limits have been checked. */
const LOOKED_AT_MS = 3 * (options.limits?.checkIntervalMs ?? 500);

async function passTime(): Promise<void> {
  // None of this keeps the process alive.
  (process.stdin as Socket).unref();
  for await (const line of createInterface({ input: process.stdin })) {
    passedMs += Number(line);
    await delay(LOOKED_AT_MS);
    const due = waiting.filter(({ untilMs }) => untilMs <= passedMs);
    waiting = waiting.filter(({ untilMs }) => untilMs > passedMs);
    for (const { resolve } of due) resolve();
    say({ event: "passed" });
  }
}

const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);

/** The default frame size of HTTP/2. */
const FRAME_BYTES = 16_384;

type Answer = (req: HttpRequest, res: HttpResponse, query: URLSearchParams) => unknown;

const answers: Record<string, Answer> = {
  /** Responds with the number of bytes received, and how the body ended. */
  "/count": (req, res) => count(req, res),
  /** Prints the number of bytes received whenever more arrive. */
  "/heard": async (req, res) => {
    let bytes = 0;
    for await (const chunk of req) {
      bytes += chunk.length;
      say({ event: "heard", bytes });
    }
    answer(res, 200, { bytes });
  },
  /** Starts to read after a while. */
  "/late": async (req, res, query) => {
    if (req.headers.expect === undefined) await full(req);
    say({ event: "waiting" });
    await wait(Number(query.get("ms")));
    await count(req, res);
  },
  /** Pauses reading for a while after the first chunk. */
  "/busy": async (req, res, query) => {
    let bytes = 0;
    for await (const chunk of req) {
      if (bytes === 0) {
        await full(req);
        say({ event: "waiting" });
        await wait(Number(query.get("ms")));
      }
      bytes += chunk.length;
    }
    answer(res, 200, { bytes });
  },
  "/exempt": (req, res) => {
    exemptFromBodyGuard(req);
    say({ event: "exempt" });
    return count(req, res);
  },
  /** Responds before it reads anything. */
  "/refuse": (_, res) => answer(res, 401, { code: "unauthenticated" }),
  /** Responds after the first chunk and reads no further. */
  "/enough": async (req, res) => {
    await firstChunk(req);
    answer(res, 413, { code: "resource_exhausted" });
  },
  /** As before, by a reader that destroys the request when it leaves. */
  "/leave": async (req, res) => {
    for await (const _ of req) break;
    answer(res, 413, { code: "resource_exhausted" });
  },
  /** As "/enough", with an empty response body. */
  "/nothing": async (req, res) => {
    await firstChunk(req);
    res.statusCode = 204;
    res.end();
  },
  /** Sends a large response and trailers after the first chunk, as gRPC does with an error. */
  "/trailers": async (req, res) => {
    await firstChunk(req);
    res.setHeader("trailer", "grpc-status");
    res.addTrailers({ "grpc-status": "8" });
    res.end("x".repeat(200_000));
  },
  /** Responds as soon as the body's bytes have arrived, before its end is signalled. */
  "/prompt": async (req, res) => {
    await once(req, "readable");
    answer(res, 200, { prompt: req.read()?.toString() });
  },
  /** Starts its response, then reads. */
  "/eager": async (req, res) => {
    (res.write as (text: string) => boolean).call(res, "begun");
    await read(req);
    res.end();
  },
  "/slow": async (req, res, query) => {
    if ((await read(req)) === undefined) return;
    say({ event: "slow" });
    await wait(Number(query.get("ms")));
    answer(res, 200, { slow: true });
  },
  "/active": (_, res) => answer(res, 200, { active: listener.active }),
};

async function firstChunk(req: HttpRequest): Promise<void> {
  for await (const _ of req.iterator({ destroyOnReturn: false })) return;
}

/** Resolves when the client has sent so much that it cannot send more until something is read. */
async function full(req: HttpRequest): Promise<void> {
  const source = "stream" in req ? req.stream : req;
  const hasRoom = () =>
    source.readableLength < source.readableHighWaterMark &&
    ("stream" in req ? (req.stream.state.localWindowSize ?? 0) : FRAME_BYTES) >= FRAME_BYTES;
  while (hasRoom() && !source.destroyed) await nextTurn();
}

async function count(req: HttpRequest, res: HttpResponse): Promise<void> {
  const bytes = await read(req);
  if (bytes !== undefined) answer(res, 200, { bytes });
  // The listener's earlier response remains; this one goes nowhere.
  else answer(res, 500, { code: "internal" });
}

/** Returns the number of bytes of a body, or nothing when it failed. */
async function read(req: HttpRequest): Promise<number | undefined> {
  let bytes = 0;
  try {
    for await (const chunk of req) bytes += chunk.length;
    say({ event: "complete", bytes });
    return bytes;
  } catch (error) {
    say({ event: "failed", bytes, code: (error as NodeJS.ErrnoException).code });
    return undefined;
  }
}

function answer(res: HttpResponse, status: number, body: object): void {
  res.statusCode = status;
  res.setHeader("content-type", "application/json");
  res.end(JSON.stringify(body));
}

const listener = createListener({
  host: "127.0.0.1",
  port: 0,
  ...options,
  limits: { ...options.limits, ...(clock && { now: () => passedMs }) },
  handle(req, res) {
    const { pathname, searchParams } = new URL(req.url ?? "/", "http://localhost");
    void (answers[pathname] ?? answers["/count"])?.(req, res, searchParams);
  },
});

say(await listener.listen());
if (clock) void passTime();
await once(process, "SIGTERM");
const begun = performance.now();
say({ event: "drained", isDone: await listener.drain(graceMs), ms: performance.now() - begun });
