import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import http2 from "node:http2";
import { json } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { requestBounds } from "../../src/rpc/request/request-bounds.ts";
import { type Answer, post } from "../harness/call.ts";
import { addOrganization } from "../harness/organization.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { connectHttp2, open } from "../http/http2-client.ts";
import { expectError } from "../rpc/expected-error.ts";
import { envelope } from "../rpc/raw-call.ts";

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
function makeImages(): string {
  const data = Buffer.concat([randomBytes(40_000), Buffer.alloc(4 * MIB - 40_000)]).toString("base64");
  const inputs = Array.from({ length: 10 }, () => ({ image: { data, mimeType: "image/png" } }));
  return JSON.stringify({ agentExecutionId: "0190c0de-0000-7000-8000-000000000000", userInput: { inputs } });
}

const IMAGES = makeImages();
const PACKED_IMAGES = new Uint8Array(gzipSync(IMAGES));

const SPACES = Buffer.alloc(LIMIT, " ");

/** A request whose last byte is missing. */
interface Held {
  /** Its answer, should it get one. */
  readonly refused: Promise<Answer>;
  leave(): void;
}

/** An answer of which only that it came matters. */
const REFUSED: Answer = { status: 429, header: new Headers(), body: undefined };

function answerTo(req: ClientRequest): Promise<Answer> {
  const answer = once(req, "response").then(async ([res]) => ({
    status: (res as IncomingMessage).statusCode ?? 0,
    header: new Headers(res.headers as Record<string, string>),
    body: await json(res),
  }));
  answer.catch(() => {});
  return answer;
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

  /**
   * Makes so many callers. Before anything is held: a body that waits for longer
   * than the server's idle time is refused, and each caller opens the database again.
   */
  async function newCallers(count: number): Promise<string[]> {
    const tokens: string[] = [];
    while (tokens.length < count) tokens.push(await newCaller());
    return tokens;
  }

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

  /** Promises so many bytes and brings none; the answer when they are refused, undefined when they are waited for. */
  async function promise(bytes: number, by?: string) {
    const req = begin(bytes, { expect: "100-continue" }, by);
    req.flushHeaders();
    const refused = answerTo(req);
    const answer = await Promise.race([refused, once(req, "continue").then(() => undefined)]);
    return { answer, leave: () => req.destroy() };
  }

  /** Brings all bytes of a request but the last. */
  function hold(bytes: number, by?: string, length: number | undefined = bytes + 1): Held {
    const req = begin(length, {}, by);
    req.write(SPACES.subarray(0, bytes));
    return { refused: answerTo(req), leave: () => req.destroy() };
  }

  /**
   * Holds all but `leftBytes` of what a caller may hold, by requests that `hold`
   * begins; again when one of them finds no room yet.
   */
  async function fill(by = token, leftBytes = 0, begin = hold): Promise<readonly Held[]> {
    const sizes = [LIMIT - 1, LIMIT - 1, BUDGET - 2 * (LIMIT - 1)];
    if (leftBytes > 0) sizes.pop();
    // The youngest of a caller is refused: this one, once the others have arrived.
    const body = new Uint8Array(SPACES.subarray(0, Math.max(leftBytes + 1, LEAST)));
    return until(
      async () => {
        const all = sizes.map((bytes) => begin(bytes, by));
        const refused = Promise.race(all.map((each) => each.refused));
        const isFull = until(
          () => Promise.race([refused.then(() => undefined), post(server, OPERATION, body, by)]),
          (answer) => answer === undefined || answer.status === 429,
        ).then((answer) => limitIn(answer) === String(BUDGET));
        if (await isFull) return all;
        for (const each of all) each.leave();
        return [];
      },
      (all) => all.length > 0,
    );
  }

  /** As `hold`, of a message of gRPC. */
  function holdGrpc(bytes: number, by = token): Held {
    const session = http2.connect(server.url).on("error", () => {});
    const headers = { authorization: `Bearer ${by}`, "content-type": "application/grpc", te: "trailers" };
    const stream = open(session, `/service.v1.${OPERATION}`, headers);
    stream.write(envelope(SPACES.subarray(0, bytes), 0, bytes + 1));
    const refused = once(stream, "trailers").then(([trailers]) => ({
      ...REFUSED,
      status: trailers["grpc-status"] === String(Code.ResourceExhausted) ? 429 : 0,
    }));
    refused.catch(() => {});
    return { refused, leave: () => session.destroy() };
  }

  function leave(all: readonly Held[]): void {
    for (const each of all) each.leave();
  }

  /**
   * Holds all that every caller may hold but the last, who then has a request answered: the youngest that is held gives
   * way to it. On a slow machine the server's idle time may end one of the others before all are held: then again.
   */
  async function refuseYoungest(last: string, others: readonly string[], fillYoungest = () => fill()) {
    const refusal = await until(
      async () => {
        const held: Held[] = [];
        for (const other of others) held.push(...(await fill(other)));
        held.push(...(await fillYoungest()));
        const youngest = held.at(-1) as Held;
        // What the youngest holds may not suffice, so that others are refused with it; any other end is one of time.
        const ended = held.map(async ({ refused }) => {
          const answer = await refused;
          return answer.status === 429 ? youngest.refused : answer;
        });
        expectError(await post(server, OPERATION, IMAGES, last), 404, "not_found", "NOT_FOUND");
        const answer = await Promise.race(ended).catch(() => undefined);
        if (answer?.status === 429) return { answer, held };
        leave(held);
        return undefined;
      },
      (outcome) => outcome !== undefined,
    );
    return refusal as NonNullable<typeof refusal>;
  }

  test("a promise costs nothing, no matter who makes how many", async () => {
    const promises = [];
    for (let count = 0; count < 4 * CALLERS; count++) promises.push(await promise(LIMIT));
    expect(promises.map(({ answer }) => answer)).toEqual(promises.map(() => undefined));
    leave(await fill());
    for (const each of promises) each.leave();
  });

  test("is one of each caller and one of all; the caller that holds the most gives way to others, and has room later", async () => {
    const [last = "", ...others] = await newCallers(CALLERS);
    const { answer: ofAll, held } = await refuseYoungest(last, others);
    expectError(ofAll, 429, "resource_exhausted", "BODY_BUDGET_EXCEEDED");
    expect(limitIn(ofAll)).toBe(String(CALLERS * BUDGET));
    // Small ones are answered as ever.
    expect((await post(server, "IdentityService/GetAuthenticatedIdentity")).status).toBe(200);
    leave(held);
    leave(await fill(last));
  });

  test("of a caller is full for the caller's next body", async () => {
    const own = await fill();
    const ofCaller = await post(server, OPERATION, new Uint8Array(SPACES.subarray(0, LEAST)), token);
    expectError(ofCaller, 429, "resource_exhausted", "BODY_BUDGET_EXCEEDED");
    expect(limitIn(ofCaller)).toBe(String(BUDGET));
    leave(own);
  });

  const gzip = { "content-encoding": "gzip" };
  const ends: Record<string, () => Promise<void>> = {
    "was answered": async () => {
      expectError(await post(server, OPERATION, IMAGES, token), 404, "not_found", "NOT_FOUND");
    },
    "was unpacked and answered": async () => {
      expectError(await post(server, OPERATION, PACKED_IMAGES, token, gzip), 404, "not_found", "NOT_FOUND");
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
      const others = await fill(token, BUDGET - 2 * (LIMIT - 1));
      const answer = await post(server, OPERATION, PACKED_IMAGES, token, gzip);
      expectError(answer, 429, "resource_exhausted", "BODY_BUDGET_EXCEEDED");
      leave(others);
    },
    "was refused in mid-body for the sake of another caller's": async () => {
      const [last = "", ...others] = await newCallers(CALLERS);
      leave((await refuseYoungest(last, others)).held);
    },
    "passed its deadline in mid-body": async () => {
      const req = begin(LIMIT, { "connect-timeout-ms": "50" });
      req.write(SPACES.subarray(0, MIB));
      const [res] = (await once(req, "response")) as [IncomingMessage];
      expect(await json(res)).toMatchObject({ code: "deadline_exceeded" });
      req.destroy();
    },
    "broke off in mid-body": async () => leave(await fill()),
    "broke off in mid-body, of unknown length": async () => {
      leave(
        await fill(token, 0, (bytes, by) => {
          const req = begin(undefined, {}, by);
          req.write(SPACES.subarray(0, bytes));
          return { refused: answerTo(req), leave: () => req.destroy() };
        }),
      );
    },
    "was reset in mid-body on HTTP/2": async () => {
      const session = await connectHttp2(server.port);
      // It stays when its requests have ended.
      session.unref();
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      leave(
        await fill(token, 0, (bytes) => {
          const stream = open(session, PATH, { ...headers, "content-length": bytes + 1 });
          stream.write(SPACES.subarray(0, bytes));
          return {
            refused: once(stream, "response").then(() => REFUSED),
            leave: () => stream.close(http2.constants.NGHTTP2_CANCEL),
          };
        }),
      );
    },
    "was refused in mid-message of gRPC for the sake of another caller's": async () => {
      const [last = "", ...others] = await newCallers(CALLERS);
      leave((await refuseYoungest(last, others, () => fill(token, 0, holdGrpc))).held);
    },
    "lost its connection in mid-message of gRPC": async () => leave(await fill(token, 0, holdGrpc)),
  };
  test.each(Object.entries(ends))("has all of its room again once a request %s", async (_name, end) => {
    await end();
    leave(await fill());
  });
});
