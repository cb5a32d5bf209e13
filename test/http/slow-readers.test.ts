import { readFileSync } from "node:fs";
import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import net from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post, repository } from "../harness/call.ts";
import { envelope } from "../harness/envelope.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { workflowCalls } from "../harness/workflow.ts";
import { connectHttp2, open } from "./http2-client.ts";

const MIB = 2 ** 20;
/** Of the server below, and what is produced before the first answers are counted. */
const CONNECTION_MIB = 8;
const PAGES_PRODUCED_MIB = 4 * 4;
const UNREAD = 60;

const LIST = "/api/service.v1.WorkflowService/ListWorkflows";
const BODY = '{"pagination":{"pageSize":100}}';

let server: TestServer;
beforeAll(async () => {
  const args = ["--output-per-connection", String(CONNECTION_MIB), "--slow-reader-timeout", "3"];
  server = await startServer({ args });
  const step = { task: { command: "é".repeat(20_000) } };
  const action = { limits: { maxParallel: 1, maxTotal: 1 }, steps: Array(50).fill(step) };
  // Each takes 2 MB, so that a page has two.
  for (let index = 0; index < 4; index++) await workflowCalls(server).created({ action });
});
afterAll(stopAll);

const headers = () => ({ "content-type": "application/json", authorization: `Bearer ${server.token}` });

const cuts = () => server.log().filter(({ msg }) => msg === "a slow reader was cut off");

function residentMib(): number {
  const status = readFileSync(`/proc/${server.process.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024;
}

/** Lists that nobody reads, on one connection of HTTP/2. */
function unreadLists(session: ClientHttp2Session): ClientHttp2Stream[] {
  return Array.from({ length: UNREAD }, () => {
    const stream = open(session, LIST, headers());
    stream.end(BODY);
    return stream;
  });
}

const closed = (stream: ClientHttp2Stream) => new Promise<void>((resolve) => stream.on("close", resolve));

test("a page of large workflows is read whole, by each protocol, compressed and not", async () => {
  for (const encoding of ["gzip", "identity"]) {
    const { status, body } = await post(server, "WorkflowService/ListWorkflows", BODY, server.token, {
      "accept-encoding": encoding,
    });
    expect([status, body.workflows.length]).toEqual([200, 2]);
    expect(body.workflows[1].spec.action.steps[49].task.command).toBe("é".repeat(20_000));
  }
  const session = await connectHttp2(server.port);
  const stream = open(session, LIST, headers());
  stream.end(BODY);
  let bytes = 0;
  for await (const chunk of stream) bytes += chunk.length;
  expect(bytes).toBeGreaterThan(4_000_000);
  session.close();
});

describe("of lists that nobody reads", () => {
  test("a connection of HTTP/2 holds no more than its share, and each is reset", async () => {
    const before = residentMib();
    const known = cuts().length;
    const session = await connectHttp2(server.port);
    const streams = unreadLists(session);
    await Promise.race(streams.map(closed));
    expect(streams.find(({ closed: isClosed }) => isClosed)?.rstCode).toBe(8);
    const [cut] = cuts().slice(known);
    expect(cut).toMatchObject({ reason: "stalled" });
    expect(Number(cut?.heldBytes) / MIB).toBeLessThan(CONNECTION_MIB + PAGES_PRODUCED_MIB);
    // All of them are 240 MiB, and were held twice.
    expect(residentMib() - before).toBeLessThan(220);
    session.destroy();
  });

  test("a connection of HTTP/1.1 is closed", async () => {
    const known = cuts().length;
    const socket = net.connect(server.port, "127.0.0.1");
    socket.on("error", () => {}).pause();
    const ended = new Promise((resolve) => socket.on("close", resolve));
    const head = Object.entries(headers()).map(([name, value]) => `${name}: ${value}\r\n`);
    const request = `POST ${LIST} HTTP/1.1\r\nHost: a\r\n${head.join("")}Content-Length: ${BODY.length}\r\n\r\n${BODY}`;
    socket.write(request.repeat(UNREAD));
    await until(
      () => cuts().length,
      (count) => count > known,
    );
    // What the kernel took before is read up to the end.
    socket.resume();
    await ended;
  });

  test("others are answered meanwhile, on another connection", async () => {
    const session = await connectHttp2(server.port);
    const streams = unreadLists(session);
    const first = Promise.race(streams.map(closed));
    let isOver = false;
    void first.then(() => {
      isOver = true;
    });
    let answered = 0;
    while (!isOver) {
      const { status } = await post(server, "IdentityService/GetAuthenticatedIdentity");
      expect(status).toBe(200);
      answered++;
    }
    expect(answered).toBeGreaterThan(0);
    session.destroy();
  });
});

test("a stream of events that is not read is reset, and the connection stays", async () => {
  const session = await connectHttp2(server.port);
  const stream = open(session, "/api/service.v1.EventService/WatchEvents", {
    ...headers(),
    "content-type": "application/connect+json",
  });
  stream.end(envelope(Buffer.from("{}")));
  await new Promise((resolve) => stream.once("response", resolve));
  const isCut = closed(stream);
  let isOver = false;
  void isCut.then(() => {
    isOver = true;
  });
  for (let made = 0; !isOver; made++) {
    const initializer = repository("https://git.example.org/team/hello.git");
    const { status } = await post(server, "ProjectService/CreateProject", { name: `p${made}`, initializer });
    expect(status).toBe(200);
  }
  expect(stream.rstCode).toBe(8);
  const other = open(session, "/api/service.v1.IdentityService/GetAuthenticatedIdentity", headers());
  other.end("{}");
  for await (const _ of other);
  expect(other.rstCode).toBe(0);
  session.close();
});

test("a stream without news outlives the answers that wait behind it on its connection", async () => {
  const known = cuts().length;
  const socket = net.connect(server.port, "127.0.0.1");
  const request = (path: string, type: string, body: Uint8Array) =>
    Buffer.concat([
      Buffer.from(
        `POST /api/service.v1.${path} HTTP/1.1\r\nHost: a\r\nContent-Type: ${type}\r\n` +
          `Authorization: Bearer ${server.token}\r\nContent-Length: ${body.length}\r\n\r\n`,
      ),
      body,
    ]);
  socket.write(
    Buffer.concat([
      request("EventService/WatchEvents", "application/connect+json", envelope(Buffer.from("{}"))),
      request("IdentityService/GetAuthenticatedIdentity", "application/json", Buffer.from("{}")),
    ]),
  );
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk;
  });
  await until(
    () => text,
    (received) => received.includes("200 OK"),
  );
  // Begun later, and cut at its time.
  const session = await connectHttp2(server.port);
  const [later] = unreadLists(session);
  await closed(later as ClientHttp2Stream);
  expect(cuts().length).toBeGreaterThan(known);
  const initializer = repository("https://git.example.org/team/hello.git");
  await post(server, "ProjectService/CreateProject", { name: "news", initializer });
  await until(
    () => text,
    (received) => received.includes("RESOURCE_TYPE_PROJECT"),
  );
  expect(socket.destroyed).toBe(false);
  socket.destroy();
  session.destroy();
});
