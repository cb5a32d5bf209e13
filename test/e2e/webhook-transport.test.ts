import { once } from "node:events";
import { request } from "node:http";
import type { Readable } from "node:stream";
import { json } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { post, reasonOf } from "../harness/call.ts";
import { type ReachableServer, startHostedServer, startServer, stopAll } from "../harness/server.ts";
import { addWorkflow, deliver, ledgerOf, type TestWorkflow, verdictsOf } from "../harness/webhook.ts";
import { hubSignature, standardSignature } from "../harness/webhook-signing.ts";
import { answerOf, connectHttp2, open } from "../http/http2-client.ts";

const MIB = 1_048_576;

let server: ReachableServer;
let workflow: TestWorkflow;
beforeAll(async () => {
  server = await startHostedServer();
  workflow = await addWorkflow(server);
});
afterAll(stopAll);

const RUN = Buffer.from('{"parameters":{}}');
const path = (id = workflow.id) => `/workflows/${id}/webhooks`;
/** As Standard Webhooks sign, under an id of its own, since the same body counts once otherwise. */
const signed = (body: Uint8Array = RUN): Record<string, string> => {
  const timestamp = Math.floor(Date.now() / 1000);
  return standardSignature(workflow.secret, body, { id: v7(), timestamp });
};

/** A body that runs the manual trigger, of exactly this many bytes. */
function bodyOf(bytes: number): Buffer {
  const text = '{"parameters":{},"padding":""}';
  return Buffer.from(text.replace('""}', `"${"x".repeat(bytes - text.length)}"}`));
}

/** Posts a body in chunks, without saying how long it is. */
async function inChunks(body: Buffer, headers: Readonly<Record<string, string>>) {
  const req = request(server.url + path(), { method: "POST", headers });
  const answered = once(req, "response");
  // Past the limit the server answers and reads no further.
  req.on("error", () => {});
  for (let start = 0; start < body.length; start += 65_536) req.write(body.subarray(start, start + 65_536));
  req.end();
  const [res] = (await answered) as [Readable & { statusCode: number }];
  return { status: res.statusCode, body: (await json(res)) as never };
}

describe("a body", () => {
  test.each([MIB - 1, MIB])("of %p bytes is taken, whether or not its length is said", async (bytes) => {
    const body = bodyOf(bytes);
    expect(body).toHaveLength(bytes);
    expect(verdictsOf(await deliver(server, workflow.id, body, signed(body)))).toEqual([202, "STARTED"]);
    expect((await inChunks(body, signed(body))).status).toBe(202);
  });

  test("of one byte more is refused, whether or not its length is said", async () => {
    const body = bodyOf(MIB + 1);
    const before = (await ledgerOf(server, workflow.id)).length;
    const answer = await deliver(server, workflow.id, body, signed(body));
    expect([answer.status, answer.body.code, reasonOf(answer)]).toEqual([
      413,
      "resource_exhausted",
      "BODY_TOO_LARGE",
    ]);
    expect(answer.body.message).toContain("1048576 bytes");
    const chunked = await inChunks(body, signed(body));
    expect([chunked.status, chunked.body]).toEqual([413, answer.body]);
    expect(await ledgerOf(server, workflow.id)).toHaveLength(before);
  });

  test("that is too large is refused before who sent it is asked", async () => {
    const unknown = await deliver(server, v7(), bodyOf(MIB + 1));
    expect(unknown.status).toBe(413);
  });

  test("is the raw one: what is signed is its bytes, also where they are no text", async () => {
    const bytes = Buffer.of(0xff, 0x00, 0xfe);
    const answer = await deliver(server, workflow.id, bytes, signed(bytes));
    expect([answer.status, reasonOf(answer), answer.body.message]).toEqual([
      400,
      "BODY_MALFORMED",
      "the body is not UTF-8",
    ]);
    const spaced = Buffer.from('{ "parameters": {} }');
    expect((await deliver(server, workflow.id, spaced, signed(RUN))).status).toBe(401);
  });

  test("over HTTP/2 is taken alike, and refused alike", async () => {
    const session = await connectHttp2(server.port);
    const send = async (body: Buffer, headers: Readonly<Record<string, string>> = signed(body)) => {
      const stream = open(session, path(), headers);
      const answer = answerOf(stream);
      stream.end(body);
      const { status, body: text } = await answer;
      return [status, JSON.parse(text)];
    };
    const verdicts = [expect.objectContaining({ verdict: "TRIGGER_VERDICT_STARTED" })];
    expect(await send(RUN)).toEqual([202, { verdicts }]);
    expect(await send(bodyOf(MIB))).toEqual([202, { verdicts }]);
    expect(await send(bodyOf(MIB + 1))).toEqual([
      413,
      expect.objectContaining({ code: "resource_exhausted" }),
    ]);
    expect(await send(RUN, {})).toEqual([401, (await deliver(server, v7(), RUN)).body]);
    session.destroy();
  });
});

describe("a request", () => {
  test.each(["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])(
    "with %s is no delivery, to no workflow",
    async (method) => {
      for (const id of [workflow.id, v7()]) {
        const res = await fetch(server.url + path(id), { method });
        expect([res.status, res.headers.get("allow")]).toEqual([405, "POST"]);
        expect(((await res.json()) as { code: string }).code).toBe("unimplemented");
      }
    },
  );

  test("has its id in the answer, and takes a query", async () => {
    const res = await fetch(`${server.url + path()}?from=here`, {
      method: "POST",
      headers: signed(),
      body: RUN,
    });
    expect(res.status).toBe(202);
    expect(res.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  });

  test("may name the workflow in capitals", async () => {
    expect((await deliver(server, workflow.id.toUpperCase(), RUN, signed())).status).toBe(202);
  });

  test.each([
    ["below /api", () => `/api${path()}`],
    ["with a slash behind it", () => `${path()}/`],
    ["without a workflow", () => "/workflows//webhooks"],
    ["of more than one workflow", () => `/workflows/${workflow.id}/${workflow.id}/webhooks`],
  ])("to a path %s is none to a webhook", async (_, place) => {
    const headers = { ...signed(), authorization: `Bearer ${server.token}` };
    const res = await fetch(server.url + place(), { method: "POST", headers, body: RUN });
    expect(res.status).toBe(404);
  });
});

test("the access log tells operation and status, and nothing that the sender chose", async () => {
  const own = await startHostedServer();
  const { id, secret } = await addWorkflow(own);
  const marked = Buffer.from('{"parameters":{"key":"a-value-of-the-sender"}}');
  const headers = {
    ...hubSignature(secret, marked),
    "webhook-extra": "a-header-of-the-sender",
  };
  const answers = [
    await deliver(own, id, marked, headers),
    await deliver(own, id, RUN, headers),
    await deliver(own, id, RUN, { "x-gitlab-token": secret }),
    await deliver(own, id, RUN, { authorization: `Bearer ${own.token}` }),
    await deliver(own, id, RUN, { authorization: "Bearer a-token-of-nobody" }),
  ];
  await own.stop();
  const lineOf = (requestId: string | null) => own.log().find((line) => line.requestId === requestId);
  const lines = answers.map(({ header }) => lineOf(header.get("x-request-id")));
  expect(
    lines.map((line) => [line?.operation, line?.code, line?.status, line?.caller !== undefined]),
  ).toEqual([
    ["webhook", "ok", 202, false],
    ["webhook", "unauthenticated", 401, false],
    ["webhook", "ok", 202, false],
    ["webhook", "ok", 202, true],
    ["webhook", "unauthenticated", 401, false],
  ]);
  const secrets = [id, secret, own.token, headers["x-hub-signature-256"], "of-the-sender", "of-nobody"];
  for (const text of secrets) expect(own.logText()).not.toContain(text);
});

test("a server that drains takes no more deliveries", async () => {
  const own = await startServer();
  const { id, secret } = await addWorkflow(own);
  const late = request(`${own.url}/workflows/${id}/webhooks`, {
    method: "POST",
    headers: { ...hubSignature(secret, RUN), "content-length": RUN.length, expect: "100-continue" },
  });
  const answered = once(late, "response");
  late.flushHeaders();
  // The server asks for the body once it has taken the delivery up.
  await once(late, "continue");
  late.write(RUN.subarray(0, 4));
  own.process.kill("SIGTERM");
  while ((await fetch(`${own.url}/readyz`)).status !== 503);
  const refused = await deliver(own, id, RUN, hubSignature(secret, RUN));
  expect([refused.status, reasonOf(refused)]).toEqual([503, "UNAVAILABLE"]);
  late.end(RUN.subarray(4));
  const [res] = (await answered) as [Readable & { statusCode: number }];
  expect(res.statusCode).toBe(202);
  expect(await own.stop()).toBe(0);
});

test("operations answer next to it as they always did", async () => {
  const answer = await post(server, "WorkflowService/GetWorkflow", { workflowId: workflow.id });
  expect(answer.body.workflow.webhookUrl).toBe(server.url + path());
});
