import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { envelope } from "../harness/envelope.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import { workflowCalls } from "../harness/workflow.ts";
import { answerOf, connectHttp2, open } from "./http2-client.ts";

const SERVICE = "/api/service.v1";
const LIST = `${SERVICE}.WorkflowService/ListWorkflows`;
const WIDE_WINDOW = 16 * 2 ** 20;

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ args: ["--output-per-connection", "1"] });
  const step = { task: { command: "é".repeat(20_000) } };
  const action = { limits: { maxParallel: 1, maxTotal: 1 }, steps: Array(50).fill(step) };
  // Two MB: a page of it fills a connection.
  await workflowCalls(server).created({ action });
});
afterAll(stopAll);

const headers = (more: Record<string, string> = {}) => ({
  "content-type": "application/json",
  authorization: `Bearer ${server.token}`,
  ...more,
});

/** A connection that holds all that it may, as its client reads one of its answers no further. */
async function fullConnection(): Promise<{ session: ClientHttp2Session; unread: ClientHttp2Stream }> {
  const session = await connectHttp2(server.port);
  // Only the unread stream stops, and not its connection.
  session.setLocalWindowSize(WIDE_WINDOW);
  const unread = open(session, LIST, headers());
  unread.end("{}");
  await new Promise((resolve) => unread.once("response", resolve));
  return { session, unread };
}

describe("a call that waits for its connection ends at its deadline", () => {
  test.each([
    ["a read", "IdentityService/GetAuthenticatedIdentity", "{}"],
    ["a write", "ProjectService/CreateProject", '{"name":"a"}'],
  ])("%s", async (_, operation, body) => {
    const { session } = await fullConnection();
    const path = `${SERVICE}.${operation}`;
    const stream = open(session, path, headers({ "connect-timeout-ms": "200" }));
    stream.end(body);
    const { status, body: answered } = await answerOf(stream);
    expect([status, JSON.parse(answered).code]).toEqual([504, "deadline_exceeded"]);
    session.destroy();
  });

  test("a stream, in the form of its protocol", async () => {
    const { session } = await fullConnection();
    const path = `${SERVICE}.EventService/WatchEvents`;
    const grpc = { "content-type": "application/grpc+json", "grpc-timeout": "200m", te: "trailers" };
    const stream = open(session, path, headers(grpc));
    stream.end(envelope(Buffer.from("{}")));
    const { headers: first, trailers } = await answerOf(stream);
    expect(trailers["grpc-status"] ?? first["grpc-status"]).toBe("4");
    session.destroy();
  });
});

test.each([
  ["a read", "IdentityService/GetAuthenticatedIdentity", "{}", 200],
  ["a write that is refused for its body", "ProjectService/CreateProject", "{}", 400],
])("%s goes on when its connection has room again", async (_, operation, body, expected) => {
  const { session, unread } = await fullConnection();
  const stream = open(session, `${SERVICE}.${operation}`, headers());
  stream.end(body);
  const answered = answerOf(stream);
  unread.resume();
  expect((await answered).status).toBe(expected);
  session.destroy();
});

test("reads whose bodies are slow to come keep no place of other reads of their account", async () => {
  const session = await connectHttp2(server.port);
  const path = `${SERVICE}.ProjectService/ListProjects`;
  const slow = Array.from({ length: 8 }, () => {
    const stream = open(session, path, headers({ "content-length": "50" }));
    stream.write("{");
    return stream;
  });
  const ended = Promise.race(slow.map((stream) => new Promise((resolve) => stream.once("close", resolve))));
  const stream = open(session, path, headers());
  stream.end("{}");
  expect(await Promise.race([answerOf(stream), ended])).toMatchObject({ status: 200 });
  session.destroy();
});

test("calls that wait are sent away when the server shuts down", async () => {
  const { session, unread } = await fullConnection();
  const calls = ["IdentityService/GetAuthenticatedIdentity", "ProjectService/CreateProject"].map(
    (operation) => {
      const stream = open(session, `${SERVICE}.${operation}`, headers());
      stream.end("{}");
      return answerOf(stream);
    },
  );
  // On one connection requests arrive in order, and this one is answered once the others wait.
  const probe = open(session, "/healthz");
  probe.end();
  await answerOf(probe);
  const stopped = server.stop();
  for (const { status, body } of await Promise.all(calls)) {
    expect([status, JSON.parse(body).code]).toEqual([503, "unavailable"]);
  }
  unread.close();
  await stopped;
  session.destroy();
});
