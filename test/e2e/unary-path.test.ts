import { once } from "node:events";
import { Agent, request } from "node:http";
import { constants } from "node:http2";
import type { Socket } from "node:net";
import { text } from "node:stream/consumers";
import { isDeepStrictEqual } from "node:util";
import { gunzipSync } from "node:zlib";
import { type DescMethod, fromBinary, fromJson, type JsonValue, toBinary, toJson } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { builderOf } from "../../src/store/query-builder.ts";
import { SYSTEM } from "../../src/store/store.ts";
import { frame } from "../fuzz/byte-mutation.ts";
import type { JsonObject } from "../fuzz/json-value.ts";
import { post, repository } from "../harness/call.ts";
import { copyData } from "../harness/data-config.ts";
import { createExchanger, type Exchange, type Exchanged, type Exchanger } from "../harness/exchange.ts";
import { addMember, withServerData } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import { printedRandom, type Random } from "../harness/random.ts";
import { type HostedServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { connectHttp2, open } from "../http/http2-client.ts";
import { expectError } from "../rpc/expected-error.ts";
import { badAuthorizations } from "./bad-tokens.ts";
import { everyOperation, type NamedOperation } from "./every-operation.ts";
import { withPlaceholders } from "./placeholders.ts";
import { randomExchange, type Strangers } from "./unary-exchange.ts";
import { makeWorld, type World } from "./world.ts";

const { NGHTTP2_CANCEL } = constants;

const READS_AN_OPERATION = 60;
const WRITES_AN_OPERATION = 15;
/** Reads under way at the same time. */
const CLIENTS = 8;
const SHOWN_FAILURES = 3;
/** All in all. */
const FEWEST = 2_000;
/** Each kind of outcome comes far more often than this. */
const SELDOM = 5;

/** Nothing may move by itself while answers are compared. */
const QUIET = ["--removal-interval", "86400", "--popularity-interval", "86400", "--lease-duration", "3600"];

/** It answers when there is work, up to a minute later. */
const WAITS = "WorkService/LeaseWork";
/** Services whose resources no job moves on, so that writes leave both servers alike. */
const UNMOVED = new Set(["ProjectService", "UserService", "ServiceAccountService", "SecurityService"]);

const random = printedRandom("unary path");
let world: World;
let strangers: Strangers;
let readOnly: string;
let first: HostedServer;
let both: readonly HostedServer[];
let exchangers: readonly Exchanger[];
beforeAll(async () => {
  first = await startHostedServer({ args: QUIET });
  world = await makeWorld(first);
  const { organizationId } = (await post(first, "IdentityService/GetAuthenticatedIdentity")).body;
  const blocked = await addMember(first, { organizationId, email: "blocked@example.org" });
  await post(first, "AccountService/BlockAccount", { accountId: blocked.accountId, reason: "a test" });
  const member = await addMember(first, { organizationId, email: "member@example.org" });
  const other = await addOrganization(first, "Elsewhere");
  const made = await post(first, "UserService/CreatePersonalAccessToken", { readOnly: true });
  readOnly = `Bearer ${made.body.token}`;
  const tokens = [blocked.token, member.token, other.token, world.runnerToken];
  strangers = [
    ...Object.values(await badAuthorizations(first)),
    ...tokens.map((each) => `Bearer ${each}`),
    readOnly,
  ];
  // What tells the last use of a token says something from now on, on both servers.
  for (const token of [...tokens, made.body.token]) {
    await post(first, "IdentityService/GetAuthenticatedIdentity", {}, token);
  }
  await first.stop();
  // Its silence would be found out at one server a moment before the other.
  await withServerData(first, (store) =>
    store.write(SYSTEM, "test", ({ db, now }) =>
      builderOf(db)
        .updateTable("runner")
        .set({ seen_at: now + 24 * 3_600_000 })
        .where("seen_at", "is not", null)
        .execute(),
    ),
  );
  const copy = `${temporaryFolder()}/data`;
  copyData(first.dataDir, copy);
  const args = [...QUIET, "--fast-path"];
  both = await Promise.all([
    startHostedServer({ dataDir: first.dataDir, args: [...args, "on"] }),
    startHostedServer({ dataDir: copy, args: [...args, "off"] }),
  ]);
  exchangers = both.map(({ port }) => createExchanger(port));
});
afterAll(async () => {
  for (const each of exchangers ?? []) each.close();
  await stopAll();
});

/** Headers that depend on the moment or the connection, and not on the answer. */
const UNRELATED = new Set(["date", "x-request-id", "connection", "keep-alive", "content-length"]);

/** What must be the same, with ids and times replaced. */
function comparable(method: DescMethod, answer: Exchanged) {
  const isGrpc = answer.headers["content-type"]?.startsWith("application/grpc");
  return isGrpc ? comparableGrpc(method, answer) : comparableConnect(method, answer);
}

function comparableGrpc({ output }: DescMethod, { status, headers, body: sent, trailers }: Exchanged) {
  const isBinary = headers["content-type"] === "application/grpc+proto";
  const flags = sent[0] ?? 0;
  const message = flags === 1 ? gunzipSync(sent.subarray(5)) : sent.subarray(5);
  const error = findTrailerError(new Headers(trailers));
  const { "grpc-status-details-bin": _, ...rest } = trailers;
  return withPlaceholders({
    status,
    headers: related(headers),
    hasRequestId: headers["x-request-id"] !== undefined,
    flags,
    hasLength: sent.length === 0 || sent.readUInt32BE(1) === sent.length - 5,
    body: withFigureNames(
      sent.length === 0
        ? undefined
        : isBinary
          ? toJson(output, fromBinary(output, message))
          : parsed(message),
    ),
    trailers: rest,
    // Ids show in the bytes of an error's details too.
    details: error?.details.map((detail) =>
      "type" in detail ? [detail.type, Buffer.from(detail.value).toString("latin1")] : detail,
    ),
  });
}

function related(headers: Readonly<Record<string, string>>): Record<string, string> {
  const kept = Object.entries(headers).filter(([name]) => !UNRELATED.has(name));
  // Pages of the console have a new nonce in each answer, and the server's own address.
  const alike = (value: string) =>
    value.replace(/'nonce-[^']*'/, "'nonce'").replace(/localhost:\d+/, "localhost");
  return Object.fromEntries(kept.map(([name, value]) => [name, alike(value)]));
}

function comparableConnect({ output }: DescMethod, { status, headers, body: sent }: Exchanged) {
  const unpacked = headers["content-encoding"] === "gzip" ? gunzipSync(sent) : sent;
  const isBinary = headers["content-type"] === "application/proto";
  const body = isBinary ? toJson(output, fromBinary(output, unpacked)) : parsed(unpacked);
  return withPlaceholders({
    status,
    headers: related(headers),
    hasRequestId: headers["x-request-id"] !== undefined,
    hasLength: headers["content-length"] === String(sent.length),
    body: withFigureNames(withReadableDetails(body)),
  });
}

/** Returns a response with the names of its figures alone: which labels have one changes with the work of that moment. */
function withFigureNames(body: unknown): unknown {
  if (typeof body !== "object" || body === null) return body;
  const named = (value: unknown) =>
    Array.isArray(value) && value.every(isFigure) ? [...new Set(value.map(({ name }) => name))] : value;
  return Object.fromEntries(Object.entries(body).map(([key, value]) => [key, named(value)]));
}

function isFigure(value: unknown): value is { readonly name: string } {
  return typeof value === "object" && value !== null && "unit" in value && "description" in value;
}

function parsed(body: Buffer): unknown {
  return body.length === 0 ? undefined : JSON.parse(body.toString());
}

/** Ids show in the bytes of an error's details too. */
function withReadableDetails(body: unknown): unknown {
  const { details } = (body ?? {}) as { details?: { value: string }[] };
  if (!Array.isArray(details)) return body;
  const readable = details.map((each) => ({
    ...each,
    value: Buffer.from(each.value, "base64").toString("latin1"),
  }));
  return { ...(body as object), details: readable };
}

/** How often each outcome came, by status and content type, for the proof that something was compared. */
const outcomes = new Map<string, number>();
const failures: string[] = [];

async function compare(method: DescMethod, exchange: Exchange): Promise<void> {
  const answers = await Promise.all(
    exchangers.map((each) =>
      each.send(exchange).then(
        (answer) => comparable(method, answer),
        (error: Error) => error.message,
      ),
    ),
  );
  const [one, other] = answers;
  const statuses = answers.map((each) => (typeof each === "string" ? each : statusOf(each)));
  // A deadline of no time passes before the body has come, or a moment after; on a busy machine others do too.
  if (hasDeadline(exchange) && (statuses.includes("504") || statuses.includes(GRPC_EXCEEDED))) return;
  // Refused as a second message by the path, which does not look at it; without the path by what it has in it.
  if (statuses[0] === GRPC_UNIMPLEMENTED && hasMoreThanMessage(exchange)) return;
  const key = `HTTP/${exchange.http} ${statuses[0]}`;
  outcomes.set(key, (outcomes.get(key) ?? 0) + 1);
  if (typeof one !== "string" && isDeepStrictEqual(one, other)) return;
  const { body, ...rest } = exchange;
  failures.push(
    `SEED=${random.seed}\n${JSON.stringify(rest)}\n${JSON.stringify(body.toString("latin1").slice(0, 2_000))}\n` +
      `on:  ${JSON.stringify(one)}\noff: ${JSON.stringify(other)}`,
  );
}

const GRPC_EXCEEDED = `gRPC ${Code.DeadlineExceeded}`;
const GRPC_UNIMPLEMENTED = `gRPC ${Code.Unimplemented}`;

function statusOf(answer: ReturnType<typeof comparable>): string {
  const { trailers } = answer as { trailers?: Record<string, string> };
  return trailers ? `gRPC ${trailers["grpc-status"]}` : `${(answer as { status: number }).status}`;
}

function hasDeadline({ headers }: Exchange): boolean {
  return headers["connect-timeout-ms"] !== undefined || headers["grpc-timeout"] !== undefined;
}

function hasMoreThanMessage({ body }: Exchange): boolean {
  return body.length > 5 && body.readUInt32BE(1) < body.length - 5;
}

function exchangesOf(choice: Random, operation: NamedOperation, count: number, asker: string): Exchange[] {
  const all = Object.values(world).filter((value) => !value.startsWith("cr_"));
  const target = {
    method: operation.method,
    example: operation.request(world) as JsonObject,
    idOf: (path: string) => {
      const kind = operation.ids[path];
      return kind && choice.chance(0.85) ? world[kind] : choice.pick(all);
    },
  };
  return Array.from({ length: count }, () => randomExchange(choice, target, asker, strangers));
}

const isRead = ({ idempotency }: DescMethod) => idempotency === Idempotency.NO_SIDE_EFFECTS;

describe("with the path of our own and without it", () => {
  const unary = everyOperation().filter(
    ([name, { method }]) => method.methodKind === "unary" && name !== WAITS,
  );

  test("reads and refusals are answered alike, whatever is sent", async () => {
    const queue = unary.flatMap(([name, operation]) => {
      const choice = random.fork(name);
      const own = operation.token?.(world) ?? first.token;
      const asker = isRead(operation.method) ? `Bearer ${own}` : readOnly;
      const count = isRead(operation.method) ? READS_AN_OPERATION : 3;
      return exchangesOf(choice, operation, count, asker).map((exchange) => ({
        method: operation.method,
        exchange,
      }));
    });
    const requests = random.fork("order").some(queue, queue.length);
    const client = async () => {
      for (let next = requests.pop(); next; next = requests.pop()) await compare(next.method, next.exchange);
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
    expect(failures.slice(0, SHOWN_FAILURES)).toEqual([]);
  });

  test("writes are answered alike, one after the other", async () => {
    const writes = unary.filter(
      ([name, { method }]) => !isRead(method) && UNMOVED.has(name.split("/")[0] ?? ""),
    );
    const queue = writes.flatMap(([name, operation]) =>
      exchangesOf(random.fork(name), operation, WRITES_AN_OPERATION, `Bearer ${first.token}`).map(
        (exchange) => ({
          method: operation.method,
          exchange,
        }),
      ),
    );
    for (const { method, exchange } of random.fork("writes").some(queue, queue.length)) {
      await compare(method, exchange);
    }
    expect(failures.slice(0, SHOWN_FAILURES)).toEqual([]);
  });

  test("thousands of requests were compared, of every kind", () => {
    const total = [...outcomes.values()].reduce((sum, count) => sum + count, 0);
    expect(total).toBeGreaterThanOrEqual(FEWEST);
    const statuses = [200, 400, 401, 403, 404, 405, 415];
    const codes = [0, Code.InvalidArgument, Code.Unauthenticated, Code.PermissionDenied, Code.NotFound];
    const expected = [
      ...["1.1", "2"].flatMap((http) => statuses.map((status) => `HTTP/${http} ${status}`)),
      ...[...codes, Code.Unimplemented].map((code) => `HTTP/2 gRPC ${code}`),
    ];
    expect(expected.filter((key) => (outcomes.get(key) ?? 0) < SELDOM)).toEqual([]);
  });
});

const WAYS = ["HTTP/1.1", "HTTP/2", "gRPC"] as const;
type Way = (typeof WAYS)[number];

function operationOf(name: string): NamedOperation {
  const [, operation] = everyOperation().find(([each]) => each === name) ?? [];
  if (!operation) throw new Error(`no operation ${name}`);
  return operation;
}

/** @param missing bytes that an envelope promises and that do not come */
function bodyOf(way: Way, { input }: DescMethod, message: JsonValue, missing = 0): Buffer {
  if (way !== "gRPC") return Buffer.from(JSON.stringify(message));
  const bytes = toBinary(input, fromJson(input, message));
  return frame(bytes, 0, bytes.length + missing);
}

describe.each([
  ["with the path of our own", 0],
  ["without it", 1],
] as const)("%s", (_, index) => {
  const server = () => ({ ...(both[index] as HostedServer), token: first.token });
  const LEASE = "WorkService/LeaseWork";
  const lease = (wait: string, headers = {}) =>
    post(server(), LEASE, { maxLeases: 32, wait }, world.runnerToken, headers);
  const canceled = (operation: string) =>
    server()
      .log()
      .filter((line) => line.operation === operation && line.code === "canceled").length;

  /** Begins a call with the first bytes of a body, and learns when the server asks for it. */
  const begin = async (way: Way, { method }: NamedOperation, bytes: Buffer, lengthBytes: number) => {
    const operation = `${method.parent.typeName}/${method.name}`;
    const headers = {
      authorization: `Bearer ${operation.endsWith(LEASE) ? world.runnerToken : first.token}`,
      "content-type": way === "gRPC" ? "application/grpc" : "application/json",
      "content-length": lengthBytes,
      expect: "100-continue",
    };
    if (way !== "HTTP/1.1") {
      const session = await connectHttp2(server().port);
      const stream = open(session, way === "gRPC" ? `/${operation}` : `/api/${operation}`, headers);
      await once(stream, "continue");
      stream.write(bytes);
      const leave = async () => {
        stream.close(NGHTTP2_CANCEL);
        await once(stream, "close");
        // Its answer shows that the server has read what came before it.
        await new Promise((resolve) => session.ping(resolve));
        session.destroy();
      };
      return { end: () => stream.end(), leave };
    }
    const req = request(`${server().url}/api/${operation}`, { method: "POST", headers });
    req.on("error", () => {});
    req.flushHeaders();
    await once(req, "continue");
    req.write(bytes);
    return { end: () => req.end(), leave: async () => void req.destroy() };
  };

  test.each(WAYS)("a client that leaves in the middle of its body has canceled: %s", async (way) => {
    const operation = operationOf("ProjectService/CreateProject");
    const name = "service.v1.ProjectService/CreateProject";
    const before = canceled(name);
    const message = { name: "Half", initializer: repository("https://git.example.org/half") };
    const body = bodyOf(way, operation.method, message, 1);
    const { leave } = await begin(way, operation, body, body.length + 1);
    await leave();
    // The log tells it of HTTP/1.1 alone: on HTTP/2 its line is written before the call knows.
    if (way === "HTTP/1.1") {
      await until(
        () => canceled(name),
        (count) => count === before + 1,
      );
    }
    const { body: listed } = await post(server(), "ProjectService/ListProjects", {
      filter: { search: "half" },
    });
    expect(listed.projects).toEqual([]);
  });

  test.each(WAYS)("a client that leaves during an operation ends it: %s", async (way) => {
    const name = "runner.v1.WorkService/LeaseWork";
    await lease("0s");
    const before = canceled(name);
    const operation = operationOf(LEASE);
    const body = bodyOf(way, operation.method, { maxLeases: 1, wait: "60s" });
    const { end, leave } = await begin(way, operation, body, body.length);
    end();
    // Nothing tells from outside that it waits; this one is mostly answered behind it.
    await post(server(), "IdentityService/GetAuthenticatedIdentity");
    await leave();
    // The log tells it of HTTP/1.1 alone: on HTTP/2 its line is written before the call knows.
    if (way === "HTTP/1.1") {
      await until(
        () => canceled(name),
        (count) => count === before + 1,
      );
    }
    const spec = { machine: { class: world.environmentClass } };
    expect((await post(server(), "EnvironmentService/CreateEnvironment", { spec })).status).toBe(200);
    // A call that went on would have taken it.
    expect((await lease("0s")).body.works).toHaveLength(1);
  });

  test("a deadline that passes during an operation ends it", async () => {
    await lease("0s");
    const begun = performance.now();
    const answer = await lease("60s", { "connect-timeout-ms": "200" });
    expectError(answer, 504, "deadline_exceeded", "DEADLINE_EXCEEDED");
    expect(performance.now() - begun).toBeGreaterThanOrEqual(190);
  });

  test("a deadline of gRPC that passes during an operation ends it", async () => {
    await lease("0s");
    const { method } = operationOf(LEASE);
    const begun = performance.now();
    const answer = await (exchangers[index] as Exchanger).send({
      http: "2",
      method: "POST",
      path: "/runner.v1.WorkService/LeaseWork",
      headers: {
        authorization: `Bearer ${world.runnerToken}`,
        "content-type": "application/grpc",
        "grpc-timeout": "200m",
      },
      body: bodyOf("gRPC", method, { maxLeases: 1, wait: "60s" }),
      hasContentLength: false,
      isSplit: false,
    });
    const error = findTrailerError(new Headers(answer.trailers));
    expect(error?.code).toBe(Code.DeadlineExceeded);
    expect(performance.now() - begun).toBeGreaterThanOrEqual(190);
  });

  test("connections are kept, whatever is answered", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const sockets = new Set<Socket>();
    for (const [token, body] of [
      [first.token, "{}"],
      [first.token, "{"],
      ["nobody", "{}"],
      [first.token, "{}"],
    ]) {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const path = "/api/service.v1.IdentityService/GetAuthenticatedIdentity";
      const req = request(server().url + path, { method: "POST", agent, headers });
      req.on("socket", (socket) => sockets.add(socket));
      req.end(body);
      const [res] = await once(req, "response");
      await text(res);
    }
    agent.destroy();
    expect(sockets.size).toBe(1);
  });
});
