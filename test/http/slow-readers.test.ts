import { readFileSync } from "node:fs";
import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import net from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { post, repository } from "../harness/call.ts";
import { envelope } from "../harness/envelope.ts";
import { addMember, type TestMember } from "../harness/member.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { workflowCalls } from "../harness/workflow.ts";
import { connectHttp2, open } from "./http2-client.ts";

const MIB = 2 ** 20;
/** Of the server below, and what is produced before the first answers are counted. */
const CONNECTION_MIB = 8;
const PAGES_PRODUCED_MIB = 4 * 4;
const UNREAD = 60;
/** Of one workflow of 140 kB, and at how many places of it a reader stops. */
const ANSWER_BYTES = 141_000;
const STOPS = 12;

const LIST = "/api/service.v1.WorkflowService/ListWorkflows";
const GET = "/api/service.v1.WorkflowService/GetWorkflow";
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

const headers = (token = server.token) => ({
  "content-type": "application/json",
  authorization: `Bearer ${token}`,
});

/** A reader of its own for each test, as answers of another may be cut a little after that test is over. */
async function newReader(): Promise<TestMember> {
  const { body } = await post(server, "IdentityService/GetAuthenticatedIdentity");
  const { organizationId } = body;
  return addMember(server, { organizationId, email: `${v7()}@localhost`, administrator: true });
}

const cutsOf = ({ accountId }: TestMember) =>
  server.log().filter(({ msg, callerKey }) => msg === "a slow reader was cut off" && callerKey === accountId);

function residentMib(): number {
  const status = readFileSync(`/proc/${server.process.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024;
}

/** Lists that nobody reads, on one connection of HTTP/2. */
function unreadLists(session: ClientHttp2Session, token = server.token): ClientHttp2Stream[] {
  return Array.from({ length: UNREAD }, () => {
    const stream = open(session, LIST, headers(token));
    stream.end(BODY);
    return stream;
  });
}

/** Requests on a connection of HTTP/1.1, one behind the other, of which nothing is read. */
function unreadRequests(path: string, body: string, token: string): net.Socket {
  const socket = net.connect(server.port, "127.0.0.1");
  socket.on("error", () => {}).pause();
  const head = Object.entries(headers(token)).map(([name, value]) => `${name}: ${value}\r\n`);
  const length = `Content-Length: ${Buffer.byteLength(body)}\r\n`;
  socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\n${head.join("")}${length}\r\n${body}`.repeat(UNREAD));
  return socket;
}

/** Reads at least so many bytes and stops again. */
function readBytes(socket: net.Socket, bytes: number): Promise<void> {
  let read = 0;
  return new Promise((resolve) => {
    socket.on("data", (chunk) => {
      read += chunk.length;
      if (read < bytes) return;
      socket.pause();
      resolve();
    });
    socket.resume();
  });
}

/** Resolves when the server has closed connections. Who reads nothing learns it when it writes. */
const closedByServer = (sockets: readonly net.Socket[]) =>
  until(
    () => {
      const open = sockets.filter(({ destroyed }) => !destroyed);
      for (const socket of open) socket.write("\r\n");
      return open.length;
    },
    (open) => open === 0,
  );

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
    const reader = await newReader();
    const before = residentMib();
    const session = await connectHttp2(server.port);
    const streams = unreadLists(session, reader.token);
    await Promise.race(streams.map(closed));
    expect(streams.find(({ closed: isClosed }) => isClosed)?.rstCode).toBe(8);
    const [cut] = await until(
      () => cutsOf(reader),
      ({ length }) => length > 0,
    );
    expect(cut).toMatchObject({ reason: "stalled" });
    expect(Number(cut?.heldBytes) / MIB).toBeLessThan(CONNECTION_MIB + PAGES_PRODUCED_MIB);
    // All of them are 240 MiB, and were held twice.
    expect(residentMib() - before).toBeLessThan(220);
    session.destroy();
  });

  test("a connection of HTTP/1.1 is closed", async () => {
    const reader = await newReader();
    await closedByServer([unreadRequests(LIST, BODY, reader.token)]);
    const [cut] = await until(
      () => cutsOf(reader),
      ({ length }) => length > 0,
    );
    expect(cut).toMatchObject({ reason: "stalled" });
  });

  test("a connection of HTTP/1.1 is closed wherever its reader stops, also at the end of an answer", async () => {
    const reader = await newReader();
    // The last pieces of such an answer are handed over at once, whether or not the system takes them.
    const steps = Array(7).fill({ task: { command: "x".repeat(20_000) } });
    const action = { limits: { maxParallel: 1, maxTotal: 1 }, steps };
    const { id: workflowId } = await workflowCalls(server).created({ action });
    const body = JSON.stringify({ workflowId });
    const sockets = Array.from({ length: STOPS }, () => unreadRequests(GET, body, reader.token));
    // At as many places of an answer.
    await Promise.all(sockets.map((socket, index) => readBytes(socket, (index * ANSWER_BYTES) / STOPS)));
    await closedByServer(sockets);
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
  const reader = await newReader();
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
  const [later] = unreadLists(session, reader.token);
  await closed(later as ClientHttp2Stream);
  await until(
    () => cutsOf(reader).length,
    (count) => count > 0,
  );
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
