import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { exemptFromBodyGuard } from "../../src/http/body-guard.ts";
import { createListener, type HttpRequest, type HttpResponse } from "../../src/http/listener.ts";

/**
 * A program around the listener for tests that need a process of its own.
 * Options come as JSON in the first argument; lines of JSON go out: the address,
 * then a line for each thing that happens. SIGTERM drains for `graceMs`.
 */
const { graceMs = 10_000, ...options } = JSON.parse(process.argv[2] ?? "{}");

const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);

type Answer = (req: HttpRequest, res: HttpResponse, query: URLSearchParams) => unknown;

const answers: Record<string, Answer> = {
  /** Answers how much came, and how it ended. */
  "/count": (req, res) => count(req, res),
  /** Begins to read after a while. */
  "/late": async (req, res, query) => {
    await wait(Number(query.get("ms")));
    await count(req, res);
  },
  /** Stops reading for a while after the first chunk. */
  "/busy": async (req, res, query) => {
    let bytes = 0;
    for await (const chunk of req) {
      if (bytes === 0) await wait(Number(query.get("ms")));
      bytes += chunk.length;
    }
    answer(res, 200, { bytes });
  },
  "/exempt": (req, res) => {
    exemptFromBodyGuard(req);
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
  handle(req, res) {
    const { pathname, searchParams } = new URL(req.url ?? "/", "http://localhost");
    void (answers[pathname] ?? answers["/count"])?.(req, res, searchParams);
  },
});

say(await listener.listen());
await once(process, "SIGTERM");
const begun = performance.now();
say({ event: "drained", isDone: await listener.drain(graceMs), ms: performance.now() - begun });
