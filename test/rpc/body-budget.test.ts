import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import http2 from "node:http2";
import { json } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { requestBounds } from "../../src/rpc/request/request-bounds.ts";
import { type Answer, post } from "../harness/call.ts";
import { addOrganization } from "../harness/organization.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { connectHttp2, open } from "../http/http2-client.ts";
import { expectError } from "./expected-error.ts";
import { envelope } from "./raw-call.ts";

const MIB = 1024 * 1024;
/** The least that the setting takes. */
const BUDGET = 128 * MIB;
/** Whose budgets are that of all. */
const CALLERS = 4;
/** Of one request. */
const LIMIT = requestBounds(AgentService.method.sendToAgentExecution.input).bytes;
/** Smaller bodies are not counted. */
const LEAST = 16 * 1024 + 1;
const OPERATION = "AgentService/SendToAgentExecution";
const PATH = `/api/service.v1.${OPERATION}`;

/** Ten images that pack a hundredfold, to a run that does not exist. */
function images(): string {
  const data = Buffer.concat([randomBytes(40_000), Buffer.alloc(4 * MIB - 40_000)]).toString("base64");
  const inputs = Array.from({ length: 10 }, () => ({ image: { data, mimeType: "image/png" } }));
  return JSON.stringify({ agentExecutionId: "0190c0de-0000-7000-8000-000000000000", userInput: { inputs } });
}

const limitIn = (answer: Answer | undefined) => answer?.body.details[0].debug.metadata.limit_bytes;

describe.each([
  ["the unary path", "on"],
  ["the protocol layer", "off"],
])("the budget of bodies on %s", (_, fastPath) => {
  let server: TestServer;
  /** Of a caller of the test's own, as what the last one held may take a moment to be let go. */
  let token: string;
  beforeEach(async () => {
    token = await newCaller();
  });
  beforeAll(async () => {
    server = await startServer({
      args: ["--caller-body-bytes", String(BUDGET / MIB), "--body-bytes", String((CALLERS * BUDGET) / MIB)],
      env: { CHARTROOM_FAST_PATH: fastPath },
    });
  });
  afterAll(stopAll);

  let callers = 0;
  const newCaller = async () => (await addOrganization(server, `Organization ${callers++}`)).token;

  /** Begins a request that promises so many bytes; without them it says nothing of its length. */
  function begin(bytes?: number, headers: Record<string, string> = {}, by = token): ClientRequest {
    const req = request(server.url + PATH, {
      method: "POST",
      headers: {
        authorization: `Bearer ${by}`,
        "content-type": "application/json",
        ...(bytes !== undefined && { "content-length": bytes }),
        ...headers,
      },
    });
    return req.on("error", () => {});
  }

  /** Promises so many bytes and brings none; the answer when they find no room, undefined when they are waited for. */
  async function promise(bytes: number, by?: string) {
    const req = begin(bytes, { expect: "100-continue" }, by);
    req.flushHeaders();
    const refused = once(req, "response").then(async ([res]) => ({
      status: (res as IncomingMessage).statusCode ?? 0,
      header: new Headers(res.headers as Record<string, string>),
      body: await json(res),
    }));
    refused.catch(() => {});
    const answer = await Promise.race([refused, once(req, "continue").then(() => undefined)]);
    return { answer, leave: () => req.destroy() };
  }

  /** Promises all that a caller may have, once it has room for it. */
  async function fill(by?: string) {
    const promises = await until(
      async () => {
        const all = [];
        for (const bytes of [LIMIT, LIMIT, BUDGET - 2 * LIMIT]) all.push(await promise(bytes, by));
        if (all.some(({ answer }) => answer)) for (const { leave } of all) leave();
        return all;
      },
      (all) => all.every(({ answer }) => answer === undefined),
    );
    return () => {
      for (const { leave } of promises) leave();
    };
  }

  /** Begins requests and ends them once another finds no room; one that asked meanwhile may have taken theirs. */
  async function endWhenFull(begin: () => () => void): Promise<void> {
    const ask = async () => {
      const { answer, leave } = await promise(LIMIT);
      leave();
      return answer;
    };
    await until(
      async () => {
        const end = begin();
        const full = await until(ask, (answer) => answer !== undefined, 5_000).catch(() => undefined);
        end();
        return full;
      },
      (full) => full !== undefined,
    );
  }

  test("is one of each caller and one of all; whoever finds no room is told so, and has it later", async () => {
    const last = await newCaller();
    const leaving = [await fill()];
    const { answer: ofCaller } = await promise(LEAST);
    expectError(ofCaller as Answer, 429, "resource_exhausted", "BODY_BUDGET_EXCEEDED");
    expect(limitIn(ofCaller)).toBe(String(BUDGET));
    while (leaving.length < CALLERS) leaving.push(await fill(await newCaller()));
    const { answer: ofAll } = await promise(LEAST, last);
    expectError(ofAll as Answer, 429, "resource_exhausted", "BODY_BUDGET_EXCEEDED");
    expect(limitIn(ofAll)).toBe(String(CALLERS * BUDGET));
    // Small ones are answered as ever.
    expect((await post(server, "IdentityService/GetAuthenticatedIdentity")).status).toBe(200);
    for (const leave of leaving) leave();
    (await fill(last))();
  });

  const gzip = { "content-encoding": "gzip" };
  const ends: Record<string, () => Promise<void>> = {
    "was answered": async () => {
      expectError(await post(server, OPERATION, images(), token), 404, "not_found", "NOT_FOUND");
    },
    "was unpacked and answered": async () => {
      const packed = new Uint8Array(gzipSync(images()));
      expectError(await post(server, OPERATION, packed, token, gzip), 404, "not_found", "NOT_FOUND");
    },
    "was refused for what it is made of": async () => {
      const body = new Uint8Array(Buffer.alloc(LIMIT, "["));
      expectError(await post(server, OPERATION, body, token), 400, "invalid_argument", "BODY_TOO_COMPLEX");
    },
    "was refused for its size": async () => {
      const { answer } = await promise(LIMIT + 1);
      expectError(answer as Answer, 429, "resource_exhausted", "BODY_TOO_LARGE");
    },
    "was refused as no gzip": async () => {
      const body = new Uint8Array(Buffer.alloc(MIB, "x"));
      expect((await post(server, OPERATION, body, token, gzip)).status).toBe(400);
    },
    "found no room for what it unpacks to": async () => {
      const others = [await promise(LIMIT), await promise(LIMIT)];
      const answer = await post(server, OPERATION, new Uint8Array(gzipSync(images())), token, gzip);
      expectError(answer, 429, "resource_exhausted", "BODY_BUDGET_EXCEEDED");
      for (const { leave } of others) leave();
    },
    "passed its deadline in mid-body": async () => {
      const req = begin(LIMIT, { "connect-timeout-ms": "50" });
      req.write("{");
      const [res] = (await once(req, "response")) as [IncomingMessage];
      expect(await json(res)).toMatchObject({ code: "deadline_exceeded" });
      req.destroy();
    },
    "broke off in mid-body": () =>
      endWhenFull(() => {
        const all = [begin(LIMIT), begin(LIMIT)];
        for (const req of all) req.write(Buffer.alloc(MIB, " "));
        return () => {
          for (const req of all) req.destroy();
        };
      }),
    "broke off in mid-body, of unknown length": () =>
      endWhenFull(() => {
        const all = [begin(), begin()];
        for (const req of all) req.write(Buffer.alloc(40 * MIB, " "));
        return () => {
          for (const req of all) req.destroy();
        };
      }),
    "was reset in mid-body on HTTP/2": async () => {
      const session = await connectHttp2(server.port);
      // It stays when its requests have ended.
      session.unref();
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      await endWhenFull(() => {
        const all = [1, 2].map(() => open(session, PATH, { ...headers, "content-length": LIMIT }));
        for (const stream of all) stream.write("{");
        return () => {
          for (const stream of all) stream.close(http2.constants.NGHTTP2_CANCEL);
        };
      });
    },
    "lost its connection in mid-message of gRPC": async () => {
      const headers = {
        authorization: `Bearer ${token}`,
        "content-type": "application/grpc",
        te: "trailers",
      };
      await endWhenFull(() => {
        const session = http2.connect(server.url).on("error", () => {});
        for (let count = 0; count < 2; count++) {
          open(session, `/service.v1.${OPERATION}`, headers).write(envelope(new Uint8Array(1), 0, LIMIT));
        }
        return () => session.destroy();
      });
    },
  };
  test.each(Object.entries(ends))("has all of its room again once a request %s", async (_name, end) => {
    await end();
    (await fill())();
  });
});
