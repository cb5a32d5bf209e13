import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { SendToAgentExecutionRequestSchema } from "#gen/service/v1/agent_service_pb.js";
import { TRAFFIC_SETTINGS } from "../../src/config/traffic-settings.ts";
import { PERMISSIONS } from "../../src/domain/identity/permissions.ts";
import { requestBounds } from "../../src/rpc/request/request-bounds.ts";
import { CONTRACT } from "../../src/rpc/routes.ts";
import { asciiJson } from "../contract/json-bytes.ts";
import { post, repository } from "../harness/call.ts";
import { registerRunner } from "../harness/fake-runner.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { answerOf, connectHttp2, open } from "../http/http2-client.ts";
import { expectError } from "./expected-error.ts";
import { callConnect, callGrpc, callGrpcHttp1, callGrpcWeb, envelope } from "./raw-call.ts";

const MIB = 1024 * 1024;
const IMAGE_BYTES = 4 * MIB;
const OPERATION = "IdentityService/GetAuthenticatedIdentity";

let server: ReachableServer;
let runnerToken: string;
beforeAll(async () => {
  server = await startHostedServer();
  runnerToken = (await registerRunner(server)).token;
});
afterAll(stopAll);

const limitOf = (operation: string): number => {
  const [service, name] = operation.split("/");
  const method = CONTRACT.find((each) => each.name === service)?.methods.find((each) => each.name === name);
  if (!method) throw new Error(`there is no ${operation}`);
  return requestBounds(method.input).bytes;
};
const LIMIT = limitOf(OPERATION);

/** An empty request in so many bytes: white space is part of a body, too. */
const blank = (size: number) => new Uint8Array(Buffer.from("{}".padEnd(size)));

/** Whom a service lets in; those of runners have operations for nobody else. */
const opens = (operation: string, role: "administrator" | "runner") =>
  PERMISSIONS[operation]?.grants[role] !== "none";

/** Opened by a runner's exchange token alone, which is used up by it. */
const REGISTER = "WorkService/Register";

/** Every operation, with its own cap; streams have theirs in envelopes. */
const OPERATIONS = CONTRACT.flatMap(({ name, methods }) =>
  methods.flatMap((method) =>
    method.methodKind === "unary" && `${name}/${method.name}` !== REGISTER
      ? [[`${name}/${method.name}`, limitOf(`${name}/${method.name}`)] as const]
      : [],
  ),
);

describe("the size of a body", () => {
  test.each(OPERATIONS)("of %s may be %d bytes and not one more", async (operation, limit) => {
    const token = opens(operation, "administrator") ? server.token : runnerToken;
    const status = (await post(server, operation, blank(limit), token)).status;
    expect([401, 403, 429]).not.toContain(status);
    const answer = await post(server, operation, blank(limit + 1), token);
    expectError(answer, 429, "resource_exhausted", "BODY_TOO_LARGE");
    expect(answer.body.details[0].debug.metadata).toEqual({ limit_bytes: String(limit) });
  });

  test("is held against the cap after decompression", async () => {
    const gzip = { "content-encoding": "gzip" };
    const zipped = (size: number) => new Uint8Array(gzipSync(blank(size)));
    expect((await post(server, OPERATION, zipped(LIMIT), server.token, gzip)).status).toBe(200);
    for (const size of [LIMIT + 1, 100 * MIB]) {
      const answer = await post(server, OPERATION, zipped(size), server.token, gzip);
      expectError(answer, 429, "resource_exhausted", "BODY_TOO_LARGE");
    }
  });

  test("does not count against a caller before it is unpacked", async () => {
    const gzip = { "content-encoding": "gzip" };
    const create = (index: number) => {
      const project = { name: `Packed ${index}`, initializer: repository("https://git.example.org/packed") };
      const body = new Uint8Array(gzipSync(JSON.stringify(project)));
      return post(server, "ProjectService/CreateProject", body, server.token, gzip);
    };
    const answers = await Promise.all(Array.from({ length: 200 }, (_, index) => create(index)));
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
  });

  test.each([
    ["Connect", callConnect, (message: Uint8Array) => message],
    ["gRPC", callGrpc, envelope],
    ["gRPC over HTTP/1.1", callGrpcHttp1, envelope],
    ["gRPC-Web", callGrpcWeb, envelope],
  ])("is capped in the binary form of %s as well", async (_, call, wrapped) => {
    // Field 15, which the contract does not know, filled up with zeros.
    const sized = (size: number) => {
      const head = Buffer.from([0x7a, 0x80, 0x80, 0x80, 0x00]);
      const content = size - head.length;
      head.writeUIntLE(0x80 | (content & 0x7f), 1, 1);
      head.writeUIntLE(0x80 | ((content >> 7) & 0x7f), 2, 1);
      head.writeUIntLE(0x80 | ((content >> 14) & 0x7f), 3, 1);
      return wrapped(Buffer.concat([head, Buffer.alloc(content)]));
    };
    expect(await call(server, OPERATION, sized(LIMIT))).toBeUndefined();
    expect((await call(server, OPERATION, sized(LIMIT + 1)))?.code).toBe(Code.ResourceExhausted);
  });
});

describe("a text at its bound, each character escaped", () => {
  test.each([
    ["語", 6],
    ["😀", 12],
  ])("of %s, %d bytes each, passes as it would in UTF-8", async (character) => {
    const request = (characters: number) =>
      asciiJson({
        leaseId: "0190c0de-0000-7000-8000-000000000000",
        fence: "1",
        prompt: character.repeat(characters),
      });
    const ask = (body: string) => post(server, "AgentWorkService/StartSubagent", body, runnerToken);
    // It was read: nothing is known of the lease.
    expectError(await ask(request(100_000)), 409, "aborted", "LEASE_LOST");
    expectError(await ask(request(100_001)), 400, "invalid_argument", "CONSTRAINT_VIOLATED");
  });
});

describe("a client that sends more than the operation takes", () => {
  const path = `/api/service.v1.${OPERATION}`;
  const headers = () => ({ authorization: `Bearer ${server.token}`, "content-type": "application/json" });

  test.each([
    ["says how much", { "content-length": 1024 * MIB }],
    ["does not say how much", { "transfer-encoding": "chunked" }],
  ])("and %s gets its answer while it is still sending", async (_, length) => {
    const req = request(server.url + path, { method: "POST", headers: { ...headers(), ...length } });
    const answered = once(req, "response") as Promise<[IncomingMessage]>;
    const sent = sendUntilRefused(req);
    const [res] = await answered;
    expect([res.statusCode, JSON.parse(await text(res)).code]).toEqual([429, "resource_exhausted"]);
    // What the kernel's buffers on both sides hold, not a part of what was to come.
    expect(await sent).toBeLessThan(64 * MIB);
  });

  test("gets it on HTTP/2 too, and the connection lives on", async () => {
    const session = await connectHttp2(server.port);
    const stream = open(session, path, headers());
    const answer = answerOf(stream);
    stream.write(Buffer.from(blank(LIMIT + 1)));
    const { status, body } = await answer;
    expect([status, JSON.parse(body).code]).toEqual([429, "resource_exhausted"]);
    const next = open(session, path, headers());
    next.end("{}");
    expect((await answerOf(next)).status).toBe(200);
    session.destroy();
  });

  test.each([
    ["says how much", { "content-length": 300_000 }],
    ["does not say how much", {}],
  ])("and %s gets it for each of 100 requests at once on HTTP/2", async (_, length) => {
    // In MB. Past its own default of 10 Node's client resets what it has yet to send with ENHANCE_YOUR_CALM.
    const session = await connectHttp2(server.port, { maxSessionMemory: 100 });
    const answers = Array.from({ length: 100 }, () => {
      const stream = open(session, path, { ...headers(), ...length });
      const answer = answerOf(stream);
      stream.end(Buffer.from(blank(300_000)));
      return answer;
    });
    for (const { status, body, resetCode } of await Promise.all(answers)) {
      expect([status, JSON.parse(body).code, resetCode]).toEqual([429, "resource_exhausted", 0]);
    }
    session.destroy();
  });
});

describe("ten images of 4 MiB to an agent", () => {
  const agentExecutionId = "0190c0de-0000-7000-8000-000000000000";
  const image = Buffer.alloc(IMAGE_BYTES, 0xa5);
  const sending = (count: number, data = image.toString("base64")) =>
    JSON.stringify({
      agentExecutionId,
      userInput: {
        inputs: Array.from({ length: count }, () => ({ image: { data, mimeType: "image/png" } })),
      },
    });
  const ask = (body: string) => post(server, "AgentService/SendToAgentExecution", body);

  test("pass in JSON, up to the last byte of the cap", async () => {
    const body = sending(10);
    expectError(await ask(body), 404, "not_found", "NOT_FOUND");
    const limit = limitOf("AgentService/SendToAgentExecution");
    expectError(await ask(body.padEnd(limit)), 404, "not_found", "NOT_FOUND");
    expectError(await ask(body.padEnd(limit + 1)), 429, "resource_exhausted", "BODY_TOO_LARGE");
  });

  test("pass gzipped, two of them that hardly pack, and several such requests one after the other", async () => {
    const noise = randomBytes(IMAGE_BYTES).toString("base64");
    const body = new Uint8Array(gzipSync(sending(2, noise)));
    expect(body.length).toBeGreaterThan(2 * IMAGE_BYTES - MIB);
    const gzip = { "content-encoding": "gzip" };
    for (let count = 0; count < 3; count++) {
      const answer = await post(server, "AgentService/SendToAgentExecution", body, server.token, gzip);
      expectError(answer, 404, "not_found", "NOT_FOUND");
    }
  });

  test("have room in the least budget of a caller, packed and unpacked", () => {
    const least = Number(TRAFFIC_SETTINGS.callerBodyBytes.default);
    expect(least * MIB).toBeGreaterThanOrEqual(2 * limitOf("AgentService/SendToAgentExecution"));
    expect(() => TRAFFIC_SETTINGS.callerBodyBytes.read(String(least - 1))).toThrow("must be a whole number");
  });

  test("pass in binary", async () => {
    const inputs = Array.from({ length: 10 }, () => ({
      input: { case: "image" as const, value: { data: new Uint8Array(image), mimeType: "image/jpeg" } },
    }));
    const message = create(SendToAgentExecutionRequestSchema, {
      agentExecutionId,
      input: { case: "userInput", value: { inputs } },
    });
    const bytes = toBinary(SendToAgentExecutionRequestSchema, message);
    for (const [call, body] of [
      [callConnect, bytes],
      [callGrpc, envelope(bytes)],
    ] as const) {
      expect((await call(server, "AgentService/SendToAgentExecution", body))?.code).toBe(Code.NotFound);
    }
  });

  test("may not be one byte larger", async () => {
    const larger = Buffer.alloc(IMAGE_BYTES + 1, 0xa5).toString("base64");
    expectError(await ask(sending(1, larger)), 400, "invalid_argument", "CONSTRAINT_VIOLATED");
  });
});

/** Sends as fast as the other side takes it until it takes no more; how many bytes went. */
async function sendUntilRefused(req: ClientRequest): Promise<number> {
  const chunk = Buffer.alloc(MIB, " ");
  let refused = false;
  let sent = 0;
  req.on("error", () => {
    refused = true;
  });
  req.once("close", () => {
    refused = true;
  });
  while (!refused && sent < 1024 * MIB) {
    if (!req.write(chunk)) await Promise.race([once(req, "drain").catch(() => undefined), pause(100)]);
    sent += chunk.length;
  }
  req.destroy();
  return sent;
}

async function text(res: IncomingMessage): Promise<string> {
  let all = "";
  for await (const chunk of res.setEncoding("utf8")) all += chunk;
  return all;
}
