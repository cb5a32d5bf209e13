import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Answer, post, repository } from "../harness/call.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { answerOf, connectHttp2, open } from "../http/http2-client.ts";
import { expectError } from "./expected-error.ts";
import { callGrpc, callGrpcHttp1, callGrpcWeb, envelope } from "./raw-call.ts";

/** What the server of this file cuts deadlines to: of every call, also of those that are to be answered in time. */
const MAX_MS = 3_000;

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer({ args: ["--max-timeout", String(MAX_MS / 1000)] });
});
afterAll(stopAll);

const timed = (timeout: string, body: unknown = {}) =>
  post(server, "ProjectService/ListProjects", body, server.token, { "connect-timeout-ms": timeout });

/** A call whose body never comes whole, and how long its answer took. */
async function unfinished(timeoutMs: string): Promise<{ answer: Answer; tookMs: number }> {
  const begun = performance.now();
  const req = request(`${server.url}/api/service.v1.ProjectService/ListProjects`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${server.token}`,
      "content-type": "application/json",
      "content-length": 100,
      "connect-timeout-ms": timeoutMs,
    },
  });
  req.on("error", () => {});
  req.write("{");
  const [res] = (await once(req, "response")) as [IncomingMessage];
  const header = new Headers(res.headers as Record<string, string>);
  const answer = { status: res.statusCode ?? 0, header, body: JSON.parse(await text(res)) };
  req.destroy();
  return { answer, tookMs: performance.now() - begun };
}

describe("a deadline in Connect-Timeout-Ms", () => {
  test.each(["abc", "-1", "1.5", "1e3", "", "12345678901"])("is refused as %j", async (timeout) => {
    expectError(await timed(timeout), 400, "invalid_argument", "BODY_MALFORMED");
  });

  test.each(["10000", "9999999999"])("may be as long as %s", async (timeout) => {
    expect((await timed(timeout)).status).toBe(200);
  });

  test("that passes before the body has come ends the call", async () => {
    let fastestMs = MAX_MS;
    // The machine may stall during one of them, and not during each.
    for (let attempt = 0; attempt < 5 && fastestMs >= MAX_MS; attempt++) {
      const { answer, tookMs } = await unfinished("50");
      expectError(answer, 504, "deadline_exceeded", "DEADLINE_EXCEEDED");
      fastestMs = tookMs;
    }
    expect(fastestMs).toBeLessThan(MAX_MS);
  });

  test("that has passed already lets nothing happen", async () => {
    const body = { name: "Too late", initializer: repository("https://git.example.org/late") };
    const answer = await post(server, "ProjectService/CreateProject", body, server.token, {
      "connect-timeout-ms": "0",
    });
    expectError(answer, 504, "deadline_exceeded", "DEADLINE_EXCEEDED");
    const { body: listed } = await post(server, "ProjectService/ListProjects", {
      filter: { search: "too late" },
    });
    expect(listed.projects).toEqual([]);
  });

  test("that has passed already ends a read, too, compressed or not", async () => {
    const now = { "connect-timeout-ms": "0" };
    const plain = await post(server, "ProjectService/ListProjects", {}, server.token, now);
    const packed = { ...now, "content-encoding": "gzip" };
    const unusual = await post(server, "ProjectService/ListProjects", gzipSync("{}"), server.token, packed);
    for (const answer of [plain, unusual]) expectError(answer, 504, "deadline_exceeded", "DEADLINE_EXCEEDED");
  });

  test.each(["60000", "9999999999"])("is cut to the server's longest: %s", async (timeout) => {
    const { answer, tookMs } = await unfinished(timeout);
    expectError(answer, 504, "deadline_exceeded", "DEADLINE_EXCEEDED");
    expect(tookMs).toBeGreaterThanOrEqual(MAX_MS - 50);
    expect(tookMs).toBeLessThan(MAX_MS * 4);
  });
});

/** A call over gRPC whose body, after these bytes, does not end; the code that it is answered. */
async function codeOfUnfinished(path: string, timeout: string, bytes: Buffer): Promise<Code | undefined> {
  const session = await connectHttp2(server.port);
  const stream = open(session, path, {
    authorization: `Bearer ${server.token}`,
    "content-type": "application/grpc",
    "grpc-timeout": timeout,
    te: "trailers",
  });
  stream.write(bytes);
  const { trailers } = await answerOf(stream);
  session.destroy();
  return findTrailerError(new Headers(Object.entries(trailers) as [string, string][]))?.code;
}

describe("a deadline in grpc-timeout", () => {
  test.each([
    ["gRPC", callGrpc],
    ["gRPC over HTTP/1.1", callGrpcHttp1],
    ["gRPC-Web", callGrpcWeb],
  ])("of nothing ends a read by %s", async (_, call) => {
    for (const timeout of ["0m", "0n", "0H"]) {
      const headers = { "grpc-timeout": timeout };
      const error = await call(server, "ProjectService/ListProjects", envelope(Buffer.alloc(0)), headers);
      expect(error?.code).toBe(Code.DeadlineExceeded);
    }
  });

  test.each([
    ["50m", 0],
    ["99999999H", MAX_MS - 50],
  ])("of %s ends a call whose body does not come", async (timeout, leastMs) => {
    const begun = performance.now();
    const path = "/service.v1.ProjectService/ListProjects";
    expect(await codeOfUnfinished(path, timeout, Buffer.from([0, 0, 0]))).toBe(Code.DeadlineExceeded);
    expect(performance.now() - begun).toBeGreaterThanOrEqual(leastMs);
  });

  test.each(["/grpc.health.v1.Health/Watch", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"])(
    "ends the stream of %s",
    async (path) => {
      expect(await codeOfUnfinished(path, "50m", envelope(Buffer.alloc(0)))).toBe(Code.DeadlineExceeded);
    },
  );
});
