import { once } from "node:events";
import type { Socket } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import { exemptFromBodyGuard } from "../../src/http/body/body-guard.ts";
import { createListener, type HttpRequest, type HttpResponse } from "../../src/http/connection/listener.ts";

/**
 * A program around the listener for tests that need a process of its own.
 * Options come as JSON in the first argument; lines of JSON go out: the address,
 * then a line for each thing that happens. SIGTERM drains for `graceMs`. With
 * `clock`, time passes for the body guard, for what the listener looks at itself
 * and for the handlers only when a line on standard input says how much: then no
 * process that stands still for a while changes the outcome. Node's own timers go on.
 */
const { graceMs = 30_000, clock = false, ...options } = JSON.parse(process.argv[2] ?? "{}");

let passedMs = 0;
let waiting: { untilMs: number; resolve: () => void }[] = [];
const wait = (ms: number): Promise<void> =>
  clock ? new Promise((resolve) => waiting.push({ untilMs: passedMs + ms, resolve })) : delay(ms);

/** Timers go off in the order of their times: the limits have been looked at when this one does. */
const LOOKED_AT_MS = 3 * (options.limits?.checkIntervalMs ?? 500);

async function passTime(): Promise<void> {
  // Nothing of this keeps the process alive.
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

/** A default frame of HTTP/2. */
const FRAME_BYTES = 16_384;

type Answer = (req: HttpRequest, res: HttpResponse, query: URLSearchParams) => unknown;

const answers: Record<string, Answer> = {
  /** Answers how much came, and how it ended. */
  "/count": (req, res) => count(req, res),
  /** Says how much has come, each time that something does. */
  "/heard": async (req, res) => {
    let bytes = 0;
    for await (const chunk of req) {
      bytes += chunk.length;
      say({ event: "heard", bytes });
    }
    answer(res, 200, { bytes });
  },
  /** Begins to read after a while. */
  "/late": async (req, res, query) => {
    if (req.headers.expect === undefined) await full(req);
    say({ event: "waiting" });
    await wait(Number(query.get("ms")));
    await count(req, res);
  },
  /** Stops reading for a while after the first chunk. */
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
  /** Answers before it reads anything. */
  "/refuse": (_, res) => answer(res, 401, { code: "unauthenticated" }),
  /** Answers after the first chunk and reads no further. */
  "/enough": async (req, res) => {
    await firstChunk(req);
    answer(res, 413, { code: "resource_exhausted" });
  },
  /** The same without a body in the answer. */
  "/nothing": async (req, res) => {
    await firstChunk(req);
    res.statusCode = 204;
    res.end();
  },
  /** Sends a large answer and trailers after the first chunk, as gRPC does with an error. */
  "/trailers": async (req, res) => {
    await firstChunk(req);
    res.setHeader("trailer", "grpc-status");
    res.addTrailers({ "grpc-status": "8" });
    res.end("x".repeat(200_000));
  },
  /** Answers as soon as the body is there, before anybody has said that it is complete. */
  "/prompt": async (req, res) => {
    await once(req, "readable");
    answer(res, 200, { prompt: req.read()?.toString() });
  },
  /** Begins its answer, then reads. */
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

/** Resolves when the client can send no more before something is read, if it only sends enough. */
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
  // What the listener answered before stands, and this goes nowhere.
  else answer(res, 500, { code: "internal" });
}

/** Bytes of a body; nothing when it failed. */
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
