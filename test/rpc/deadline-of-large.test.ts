import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { addOrganization } from "../harness/organization.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { worstRequests } from "../harness/worst-requests.ts";
import { answerOf, connectHttp2, open } from "../http/http2-client.ts";
import { callGrpc, envelope } from "./raw-call.ts";

const MIB = 1024 * 1024;
/** A small part of what the requests before it take. */
const TIMEOUT_MS = 100;
/** Callers whose requests come first; each takes the thread that reads requests past 1 MiB up to a second. */
const CALLERS = 4;
/** The machine may hold up the request, or its answer, during one of them, and not during each. */
const ATTEMPTS = 5;

function longestRequest(): { path: string; body: Buffer } {
  const operation = "WorkflowService/UpdateWorkflow";
  const longest = worstRequests(Number.POSITIVE_INFINITY).find(
    (each) => each.operation === operation && each.isValid && each.contentType === "application/json",
  );
  if (!longest) throw new Error(`there is no ${operation}`);
  return { path: `/api/service.v1.${operation}`, body: longest.body() };
}

describe.each([
  ["the unary path", "on"],
  ["the protocol layer", "off"],
])("on %s a large request", (_, fastPath) => {
  let server: ReachableServer;
  const tokens: string[] = [];
  beforeAll(async () => {
    server = await startHostedServer({ env: { CHARTROOM_FAST_PATH: fastPath } });
    tokens.length = 0;
    for (let index = 0; index < CALLERS; index++) {
      tokens.push((await addOrganization(server, `Organization ${index}`)).token);
    }
  });
  afterAll(stopAll);

  /** Asks when the longest requests of other callers wait already; the answer, and whether it came before most of theirs. */
  async function behindLongest(ask: () => Promise<unknown>) {
    for (let attempt = 1; ; attempt++) {
      const result = await askBehindLongest(ask);
      if (result.isAtOnce || attempt === ATTEMPTS) return result;
    }
  }

  async function askBehindLongest(ask: () => Promise<unknown>) {
    const { path, body } = longestRequest();
    const session = await connectHttp2(server.port);
    let answered = 0;
    const streams = tokens.map((token) => {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const stream = open(session, path, { ...headers, "content-length": body.length });
      const counted = answerOf(stream).then(() => answered++);
      return { stream: stream.end(body), counted };
    });
    await Promise.all(streams.map(({ stream }) => once(stream, "finish")));
    // The server has all that was sent before a ping that it answers.
    await new Promise((resolve) => session.ping(resolve));
    const outcome = await ask();
    const isAtOnce = answered < CALLERS / 2;
    // Those of the next attempt wait for nothing of this one.
    if (!isAtOnce) await Promise.all(streams.map(({ counted }) => counted));
    session.destroy();
    return { outcome, isAtOnce };
  }

  test("that waits for its turn longer than Connect-Timeout-Ms is answered then", async () => {
    const blank = new Uint8Array(Buffer.from("{}".padEnd(2 * MIB)));
    const headers = { "connect-timeout-ms": String(TIMEOUT_MS) };
    const ask = async () =>
      (await post(server, "ProjectService/CreateProjects", blank, server.token, headers)).body.code;
    expect(await behindLongest(ask)).toEqual({ outcome: "deadline_exceeded", isAtOnce: true });
  });

  test("that waits longer than grpc-timeout is answered then", async () => {
    // Field 15, which the contract does not know.
    const bytes = Buffer.concat([Buffer.from([0x7a, 0x80, 0x80, 0x80, 0x01]), Buffer.alloc(2 * MIB)]);
    const headers = { "grpc-timeout": `${TIMEOUT_MS}m` };
    const ask = async () =>
      (await callGrpc(server, "ProjectService/CreateProjects", envelope(bytes), headers))?.message;
    const outcome = "[deadline_exceeded] the deadline of the request passed";
    expect(await behindLongest(ask)).toEqual({ outcome, isAtOnce: true });
  });
});
